// Opens an offline model with Netron's own reader and prints what it found as JSON.
// Arguments: folder with Netron's modules, model file.
import * as crypto from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as url from 'node:url';

const [folder, file] = process.argv.slice(2);
const load = (name) => import(url.pathToFileURL(path.join(folder, name)).href);
const base = await load('base.js');
const om = await load('om.js');

const context = {
    stream: new base.BinaryStream(new Uint8Array(fs.readFileSync(file))),
    require: (id) => load(`${id}.js`),
    metadata: async (name) => {
        const types = new Map();
        for (const type of JSON.parse(fs.readFileSync(path.join(folder, name)))) {
            types.set(type.name, type);
        }
        return { type: (name) => types.get(name) || { name } };
    },
    set(type, value) {
        this.type = type;
        this.value = value;
        return type;
    }
};

const digest = (bytes) => bytes && bytes.length ? crypto.createHash('sha256').update(bytes).digest('hex') : '';

const describeType = (type) => type === null ? null : {
    dtype: type.dataType,
    shape: type.shape.dimensions.map((dim) => Number(dim)),
    layout: type.denotation
};

const describeValue = (value) => ({
    name: value.name,
    type: describeType(value.type),
    bytes: value.initializer ? value.initializer.values.length : 0,
    sha256: value.initializer ? digest(value.initializer.values) : ''
});

const plain = (value) => {
    if (typeof value === 'bigint') {
        return Number(value);
    }
    if (Array.isArray(value)) {
        return value.map(plain);
    }
    return value instanceof Object ? null : value;
};

const describeNode = (node) => ({
    name: node.name,
    type: node.type.name,
    inputs: node.inputs.map((argument) => argument.value.map(describeValue)).flat(),
    outputs: node.outputs.map((argument) => argument.value.map(describeValue)).flat(),
    attributes: Object.fromEntries(node.attributes.map((attribute) => [attribute.name, plain(attribute.value)])),
    controls: node.controlDependencies.length
});

const factory = new om.ModelFactory();
if (!await factory.match(context)) {
    throw new Error('Netron does not take the file for an offline model.');
}
const model = await factory.open(context);
const graphs = model.modules.map((graph) => ({ name: graph.name, nodes: graph.nodes.map(describeNode) }));
process.stdout.write(JSON.stringify({ format: model.format, graphs }));
