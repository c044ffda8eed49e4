"""Reads the checkpoints of polyhead."""
import h5py

from torch_model import Shape, Transformer, parse_config


def fields(message):
    """(number, value) of each field of a protocol buffer; values of fixed-size fields are None."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
        elif wire == 2:
            size = varint()
            yield number, message[at : at + size]
            at += size
        else:
            at += 8 if wire == 1 else 4
            yield number, None


def pieces_of(vocabulary):
    """Pieces of the SentencePiece model in a checkpoint's vocabulary, by id: the model follows its name and size."""
    name = b"sentencepiece"
    if name not in vocabulary:
        raise SystemExit("check needs a checkpoint whose tokenizer.kind is sentencepiece")
    begin = vocabulary.index(name) + len(name)
    size = int.from_bytes(vocabulary[begin : begin + 8], "little")
    model = vocabulary[begin + 8 : begin + 8 + size]
    return [dict(fields(piece))[1].decode() for number, piece in fields(model) if number == 1]


def read_config(path):
    """The resolved configuration in a checkpoint, as text."""
    with h5py.File(path) as f:
        return bytes(f["config"][()]).decode()


def load_checkpoint(path):
    """The model of a checkpoint, its configuration and its vocabulary."""
    config = parse_config(read_config(path))
    with h5py.File(path) as f:
        parameters = f["ema"] if len(f.get("ema", ())) else f["parameters"]
        model = Transformer(Shape(config, parameters["embedding/weight"].shape[0]))
        model.load(parameters)
        return model.eval(), config, bytes(f["vocabulary"][()])
