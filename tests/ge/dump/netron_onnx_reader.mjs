// Opens a model in ONNX's text form with Netron's own reader and prints what it found as JSON.
// Arguments: folder with Netron's modules, model file.
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as url from 'node:url';

const [folder, file] = process.argv.slice(2);
const load = (name) => import(url.pathToFileURL(path.join(folder, name)).href);
const base = await load('base.js');
const protobuf = await load('protobuf.js');
const onnx = await load('onnx.js');

const context = {
    identifier: path.basename(file),
    stream: new base.BinaryStream(new Uint8Array(fs.readFileSync(file))),
    require: (id) => load(`${id}.js`),
    asset: (name) => fs.readFileSync(path.join(folder, name), 'utf-8'),
    async peek() {
        return undefined;
    },
    async tags(kind) {
        const reader = kind === 'pbtxt' ? protobuf.TextReader.open(this.stream) : null;
        const tags = reader ? reader.signature() : new Map();
        this.stream.seek(0);
        return tags;
    },
    async read(kind) {
        return kind === 'protobuf.text' ? protobuf.TextReader.open(this.stream) : undefined;
    },
    set(type, value) {
        this.type = type;
        this.value = value;
        return type;
    }
};

const describeGraph = (graph) => ({ name: graph.name, nodes: graph.nodes.map(describeNode) });

const plain = (argument) => {
    const value = argument.value;
    if (argument.type === 'graph') {
        return describeGraph(value);
    }
    if (Array.isArray(value)) {
        return value.map((item) => typeof item === 'bigint' ? Number(item) : item);
    }
    return typeof value === 'bigint' ? Number(value) : value;
};

const names = (args) => args.map((argument) => argument.value.map((value) => value.name)).flat();

const describeNode = (node) => ({
    name: node.name,
    type: node.type.name,
    inputs: names(node.inputs),
    outputs: names(node.outputs),
    attributes: Object.fromEntries(node.attributes.map((argument) => [argument.name, plain(argument)]))
});

const describeOutput = (argument) => ({
    name: argument.name,
    dtype: argument.value[0].type.dataType,
    shape: argument.value[0].type.shape.dimensions.map(Number)
});

const factory = new onnx.ModelFactory();
if (!await factory.match(context)) {
    throw new Error('Netron does not take the file for an ONNX model.');
}
const model = await factory.open(context);
const [graph] = model.modules;
process.stdout.write(JSON.stringify({
    format: model.format,
    producer: model.producer,
    graph: describeGraph(graph),
    outputs: graph.outputs.map(describeOutput)
}));
