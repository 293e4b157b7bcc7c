#!/usr/bin/env bash
# What trees a trained system has found: bash examples/sa_nmt/trees.sh ARCHITECTURE
#   UD_EN, UD_DE    treebank with which the trees of English and German source sentences are compared, such as the test
#                   sets of UD English-EWT and German-GSD: CoNLL-U, plain or .gz; without it, nothing is compared
#   TARGET_CONLLU   tags (UPOS) of the target side of the test set, CoNLL-U; without it, gates are not counted by tag
#   SENTENCE        number of the sentence of the test set to draw
# Files are left in $OUT/trees, the tables are printed.
source "$(dirname "$0")/settings.sh"
: "${UD_EN:=}" "${UD_DE:=}" "${TARGET_CONLLU:=}"
: "${SENTENCE:=3}"
: "${LOWERCASE=1}"                  # Multi30k is lower-cased; LOWERCASE= for models of text that is not
system="${1:?give an architecture: $SA_SYSTEMS}"
check_system "$system"
folder="$OUT/trees/$PAIR-$system-$SEED"
model=("$DATA_BIN" --path "$OUT/checkpoints/$PAIR-$system-$SEED/checkpoint_best.pt" "${DEVICE[@]}")
# words of a treebank as the model knows them; German text has "im", its treebank has "in" and "dem", too
case "$SOURCE" in
en) treebank="$UD_EN" words=() ;;
de) treebank="$UD_DE" words=(--collapse-ranges) ;;
*) treebank="" words=() ;;
esac
words+=(--bpe subword_nmt --bpe-codes "$OUT/bpe.codes.$SOURCE" ${LOWERCASE:+--lowercase})

run mkdir -p "$folder"
if [[ -n "$treebank" ]]; then
    run_to "$folder/attachment.txt" fairseq-syntax-attachment "${model[@]}" --gold "$treebank" "${words[@]}" --by deprel
    run_to "$folder/grammar.txt" fairseq-syntax-grammar "${model[@]}" --gold "$treebank" "${words[@]}"
    run fairseq-syntax-trees "${model[@]}" --input "$treebank" "${words[@]}" --output "$folder/treebank.conllu" --overwrite
    [[ -n "$DRY_RUN" ]] || cat "$folder/attachment.txt" "$folder/grammar.txt"
else
    echo "trees.sh: no treebank for source language $SOURCE (UD_EN, UD_DE): trees are drawn, not compared" >&2
fi
run fairseq-syntax-trees "${model[@]}" --subset test --sentence "$SENTENCE" --draw "$folder/tree.svg" --overwrite
run fairseq-syntax-attention "${model[@]}" --subset test --sentence "$SENTENCE" --output "$folder/heads.png"
if [[ "$system" == sa_nmt_1set ]]; then
    echo "trees.sh: sa_nmt_1set has no gate on syntax" >&2
else
    run fairseq-syntax-gates "${model[@]}" --subset test --output "$folder/gates.tsv" --html "$folder/gates.html" \
        --draw "$folder/gates.png" ${TARGET_CONLLU:+--target-conllu "$TARGET_CONLLU"} --overwrite
fi
echo "files: $folder" >&2
