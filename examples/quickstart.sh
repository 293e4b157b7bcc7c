#!/usr/bin/env bash
# The quick start, `make demo`: make a small corpus with gold trees, train a stock Transformer and PASCAL on it under
# one budget, translate, score BLEU and verb agreement, draw one attention picture. Everything lands in $OUT.
set -euo pipefail
ROOT="$(cd "$(dirname "$0")/.." && pwd)"
: "${OUT:=demo-out}"
: "${USER_DIR:=$ROOT/fairseq_syntax}"
: "${UPDATES:=450}"
: "${SEED:=1}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# glibc gives large tensors back to the system after every operation and fetches them again; on a CPU, keeping them
# saves a good part of the time (as much as half where page faults are dear, as on virtual machines).
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}" MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-17179869184}"
log="$OUT/demo.log"
if [[ -e "$OUT" && ! -e "$log" ]]; then
    echo "quickstart.sh: OUT=$OUT exists and is not from an earlier quick start; name another folder" >&2
    exit 1
fi
rm -rf "$OUT"
mkdir -p "$OUT"
started=$SECONDS
# Ctrl-C does not reach jobs in the background
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
say() { printf '[%3ds] %s\n' $((SECONDS - started)) "$*"; }
quietly() { "$@" >> "$log" 2>&1 || { echo "failed: $*; the end of $log:" >&2; tail -n 20 "$log" | cut -c1-300 >&2; exit 1; }; }

say "making the agreement corpus (English-like to German-like, with gold trees)"
quietly python "$ROOT/examples/agreement/generate.py" --output "$OUT/corpus" --seed "$SEED"

say "cutting words into subwords (subword-nmt, 1000 joint merges)"
quietly subword-nmt learn-joint-bpe-and-vocab -s 1000 --input "$OUT/corpus/train.en" "$OUT/corpus/train.de" \
    -o "$OUT/codes" --write-vocabulary "$OUT/vocab.en" "$OUT/vocab.de"
mkdir -p "$OUT/bpe"
for split in train valid test challenge; do
    for language in en de; do
        quietly subword-nmt apply-bpe -c "$OUT/codes" \
            --input "$OUT/corpus/$split.$language" --output "$OUT/bpe/$split.$language"
    done
    cp "$OUT/corpus/$split.en.conllu" "$OUT/bpe/" # trees are of words: they serve any segmentation
done

say "binarizing text and trees (fairseq-syntax-preprocess)"
quietly fairseq-syntax-preprocess --source-lang en --target-lang de --joined-dictionary --trainpref "$OUT/bpe/train" \
    --validpref "$OUT/bpe/valid" --testpref "$OUT/bpe/test,$OUT/bpe/challenge" --destdir "$OUT/data-bin"

# one process a core: both systems train at the same time, under the same budget
train() { # name, options
    local name="$1"
    shift
    fairseq-train "$OUT/data-bin" --user-dir "$USER_DIR" "$@" --cpu --seed "$SEED" --share-all-embeddings \
        --encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 \
        --encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0.1 --optimizer adam \
        --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr 3e-3 --lr-scheduler inverse_sqrt --warmup-updates 200 \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 2500 --max-update "$UPDATES" \
        --num-workers 0 --no-epoch-checkpoints --disable-validation --log-format simple --log-interval 20 \
        --save-dir "$OUT/$name" > "$OUT/$name.log" 2>&1
}
say "training transformer_tiny and pascal_transformer_tiny at the same time, $UPDATES updates each"
train transformer --arch transformer_tiny &
stock=$!
train pascal --arch pascal_transformer_tiny --encoder-pascal-heads 2 &
pascal=$!
# the progress of both, every ten seconds, until both are done
while kill -0 "$stock" 2>/dev/null || kill -0 "$pascal" 2>/dev/null; do
    sleep 10
    for name in transformer pascal; do
        { grep -o 'num_updates=[0-9]*' "$OUT/$name.log" || true; } | tail -n 1 | sed "s/num_updates=/$name /"
    done | paste -sd ' ' | sed "s/^/        updates: /"
done
wait "$stock" || { tail -n 20 "$OUT/transformer.log" | cut -c1-300 >&2; exit 1; }
wait "$pascal" || { tail -n 20 "$OUT/pascal.log" | cut -c1-300 >&2; exit 1; }

translate() { # system, split of the data, split of the corpus
    fairseq-generate "$OUT/data-bin" --user-dir "$USER_DIR" --cpu --path "$OUT/$1/checkpoint_last.pt" \
        --gen-subset "$2" --beam 2 --max-tokens 4000 --max-len-a 1.5 --max-len-b 10 --remove-bpe \
        > "$OUT/$1.$3.generated" 2>> "$OUT/$1.log"
    sed -n 's/^H-\([0-9]*\)\t[^\t]*\t/\1\t/p' "$OUT/$1.$3.generated" | sort -n | cut -f2 > "$OUT/$1.$3.de"
}
jobs=()
say "translating the test and challenge sentences"
for name in transformer pascal; do
    { translate "$name" test test && translate "$name" test1 challenge; } &
    jobs+=($!)
done
for job in "${jobs[@]}"; do
    wait "$job" || { tail -n 20 "$OUT"/*.log | cut -c1-300 >&2; exit 1; }
done

say "drawing what a parent-scaled head attends to"
quietly fairseq-syntax-attention "$OUT/data-bin" --path "$OUT/pascal/checkpoint_last.pt" --subset test1 \
    --sentence 250 --output "$OUT/attention.png"

for name in transformer pascal; do
    echo
    echo "== $name"
    sacrebleu "$OUT/corpus/test.de" --input "$OUT/$name.test.de" --tokenize none --force --format text
    python "$ROOT/examples/agreement/score.py" --challenge "$OUT/corpus/challenge.tsv" \
        --hypotheses "$OUT/$name.challenge.de"
done
echo
say "done; picture: $OUT/attention.png, logs and outputs: $OUT/"
