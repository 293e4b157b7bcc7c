#!/usr/bin/env bash
# Make everything that the systems of news.toml train on, in $OUT: English-German news, with spaCy's trees, linear and random ones,
# and Stanza's of Universal Dependencies, and PUD, whose trees are gold, besides. `fairseq-syntax experiment` calls it.
#   DATA      folder of the corpus: train, valid (newstest2015), test2014 and test2016 .en and .de, plain or .gz (WMT's test sets)
#   PUD       folder of UD's parallel treebanks: en_pud.conllu.gz and de_pud.conllu.gz
#   STANZA_TAGGER, STANZA_PARSER   model files of lower-cased English
: "${OUT:=outputs/news}"
source "$(dirname "${BASH_SOURCE[0]}")/study.sh"
: "${PUD:=}" "${STANZA_TAGGER:=}" "${STANZA_PARSER:=}"
[[ -n "$PUD" ]] || stop "set PUD to the folder of UD's parallel treebanks: the head of $0 says what is in it"
SPLITS=(train valid test2016 test2014 pud)
TESTS=test2016,test2014,pud,pud-gold
for split in train valid test2016 test2014; do
    split_text "$split" "$split" de de
done
clean_training de
# PUD's English in its own words, and its German as it was written
run python "$EXAMPLES/experiments/raw_text.py" treebank "$PUD/en_pud.conllu.gz" --words "$TEXT/pud.en" --trees "$OUT/pud-gold.conllu"
run python "$EXAMPLES/experiments/raw_text.py" treebank "$PUD/de_pud.conllu.gz" --raw "$RAW/pud.de"
tokenize de "$RAW/pud.de" "$TEXT/pud.de"
parse_splits "${SPLITS[@]}"
perturbed_trees linear right "${SPLITS[@]}"
perturbed_trees random random "${SPLITS[@]}"
# the tagger and parser read lower-cased text; trees are of the words as they are
run mkdir -p "$OUT/ud"
for split in "${SPLITS[@]}"; do
    [[ ! -s "$OUT/ud/$split.en.conllu" ]] || continue
    run_filter "$TEXT/$split.en" "$OUT/ud/$split.lower" python -c 'import sys; [print(line.lower(), end="") for line in sys.stdin]'
    run fairseq-syntax parse --input "$OUT/ud/$split.lower" --output "$OUT/ud/$split.lower.conllu" --parser-language en \
        ${STANZA_TAGGER:+--parser-tagger "$STANZA_TAGGER"} ${STANZA_PARSER:+--parser-model "$STANZA_PARSER"}
    run python "$EXAMPLES/experiments/raw_text.py" recase "$OUT/ud/$split.lower.conllu" "$TEXT/$split.en" --output "$OUT/ud/$split.en.conllu"
done
run cp "$TEXT/pud.en" "$TEXT/pud-gold.en"
run cp "$TEXT/pud.de" "$TEXT/pud-gold.de"
for kind in linear random; do # these read no gold trees
    run cp "$OUT/$kind/pud.en.conllu" "$OUT/$kind/pud-gold.en.conllu"
done
for folder in "$TEXT" "$OUT/ud"; do
    run cp "$OUT/pud-gold.conllu" "$folder/pud-gold.en.conllu"
done
unless_there "$OUT/bpe.codes" run subword-nmt learn-joint-bpe-and-vocab -s 4000 --input "$TEXT/train.en" "$TEXT/train.de" \
    -o "$OUT/bpe.codes" --write-vocabulary "$OUT/vocab.en" "$OUT/vocab.de"
segment de "$OUT/bpe.codes" "$OUT/bpe.codes" "${SPLITS[@]}" pud-gold
binarize parser "$TEXT" de "$TESTS" --joined-dictionary
for kind in linear random ud; do
    binarize "$kind" "$OUT/$kind" de "$TESTS"
done
