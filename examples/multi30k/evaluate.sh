#!/usr/bin/env bash
# Translate a test set and score it: bash examples/multi30k/evaluate.sh SYSTEM [test|test1|valid]
# The score is sacreBLEU against the tokenised, lower-cased references, hence --tokenize none.
source "$(dirname "$0")/settings.sh"
system="${1:?give a system: transformer, pascal, lisa, tag or multitask}"
subset="${2:-test}"
system_options "$system"
name="$OUT/$system-$SEED.$subset"
run sh -c 'out="$1"; shift; "$@" > "$out.part" && mv "$out.part" "$out"' sh "$name.generated" \
    fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${DEVICE[@]}" \
    --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$subset" \
    --path "$OUT/checkpoints/$system-$SEED/checkpoint_best.pt" --beam "$BEAM" --max-tokens 4096 \
    --max-len-a 1.5 --max-len-b 10 --remove-bpe
[[ -n "$DRY_RUN" ]] && exit
sed -n 's/^H-\([0-9]*\)\t[^\t]*\t/\1\t/p' "$name.generated" | sort -n | cut -f2 > "$name.hypotheses"
sacrebleu "$OUT/text/$subset.$TARGET" --input "$name.hypotheses" --tokenize none --metrics bleu | tee "$name.bleu"
