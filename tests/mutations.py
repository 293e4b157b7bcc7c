"""CoNLL-U files with things wrong that happen to files, the same for the same seed."""

import gzip
import random

WORDS = ["the", "dog", "runs", "Straße", "#", "_", "中", "don't"]
NASTY = [
    *("", "_", "0", "1", "2", "3", "01", "-1", "-0", "+1", " 1", "1_0", "1.1", "0.1", "1-2", "2-1", "1-", "99", "٣"),
    *("9" * 5000, "x" * 70_000, "NO\rUN", "a b", "\u2028", "\x85", "\x0c", "\x00", "\ufeff", "#", "NaN", "root"),
    "\udcff",
]
CHARACTERS = ["\t", "\n", "\r", " ", "#", "0", "9", "_", "\x00", "\x85", "\u2029", "\xa0", "\ufeff", "\udcff", "-", "."]


def treebank(rng: random.Random, sentences: int) -> list[list[str]]:
    """Lines of the sentences of a file that is right: ranges, empty nodes, comments, several roots, no parse."""
    blocks = []
    for number in range(sentences):
        size = rng.randint(1, 6)
        order = rng.sample(range(1, size + 1), size)
        heads = {
            word: order[rng.randrange(rank)] if rank and rng.random() < 0.9 else 0 for rank, word in enumerate(order)
        }
        parsed = rng.random() < 0.9
        lines = [f"# sent_id = {number}"] * rng.randint(0, 2)
        for word in range(1, size + 1):
            if rng.random() < 0.1:
                lines.append(f"{word - 1}.1" + "\tghost" + "\t_" * 8)
            elif word < size and rng.random() < 0.1 and not any(f"-{word}\t" in line for line in lines):
                lines.append(f"{word}-{word + 1}\t{rng.choice(WORDS)}" + "\t_" * 8)
            head, deprel = (heads[word], rng.choice(["nsubj", "obj", "nmod:poss"])) if parsed else ("_", "_")
            deprel = "root" if head == 0 else deprel
            tags = rng.choice(["NOUN\t_\tNN", "VERB\t_\tVB", "DET\t_\tDT"]).split("\t_\t")
            form = rng.choice(WORDS)
            lines.append(f"{word}\t{form}\t{form}\t{tags[0]}\t{tags[1]}\t_\t{head}\t{deprel}\t_\tx=y")
        blocks.append(lines)
    return blocks


def mutate(rng: random.Random, text: str) -> str:
    """One thing goes wrong."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    line = lines[place]
    kind = rng.randrange(9)
    if kind <= 2 and "\t" in line:  # a field
        columns = line.split("\t")
        columns[rng.choice([0, 0, 1, 3, 4, 6, 6, 7, 7, rng.randrange(len(columns))]) % len(columns)] = rng.choice(NASTY)
        lines[place] = "\t".join(columns)
    elif kind == 3:
        del lines[place]
    elif kind == 4:
        lines.insert(rng.randrange(len(lines)), line)
    elif kind == 5:
        other = rng.randrange(len(lines))
        lines[place], lines[other] = lines[other], line
    elif kind == 6:
        return text[: rng.randrange(len(text) + 1)]
    elif kind == 7:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice(CHARACTERS) + text[at + rng.randint(0, 2) :]
    else:
        lines.insert(place, rng.choice(["", " ", "\t", "# c", "plain text", "1\t2", "\t" * 9, "#", "\r", "0\t" * 9]))
    return "\n".join(lines)


def file(seed: int) -> tuple[bytes, bool]:
    """A damaged file, and whether it is gzipped; now and then it is whole."""
    rng = random.Random(seed)
    text = "\n".join("\n".join(block) + "\n" for block in treebank(rng, rng.randint(1, 6)))
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3])):
        text = mutate(rng, text)
    if rng.random() < 0.1:
        text = text.replace("\n", "\r\n")
    data = text.encode("utf-8", "surrogateescape")
    if rng.random() < 0.05:
        data = b"\xef\xbb\xbf" + data
    packed = rng.random() < 0.1
    if packed:
        data = gzip.compress(data, mtime=0)
        if rng.random() < 0.5:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randint(0, 1) :]
    return data, packed
