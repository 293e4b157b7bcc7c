# Shared by the WMT recipes: nc11, wmt16, pascal_wmt17, pascal_wmt18 and pascal_wat, which reproduce Bugliarello & Okazaki
# (2020), wmt17, which reproduces Tran & Bisk (2018) and takes the text, the subwords and the scores from here, and wmt14,
# which reproduces Chen et al. (2018) and takes the trees, too. Sourced by their settings.sh, after their own settings.
# LR, BETA2: a number, which may be followed by SYSTEM=NUMBER for systems that have another.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
: "${VALID_SET:=wmt15}" "${TEST_SET:=wmt16}"  # newstest2015 and newstest2016, as sacrebleu calls them; there may be
                                              # several test sets, "wmt16 wmt17": the splits test, test1, …
: "${MAX_WORDS:=80}" "${MAX_RATIO:=9}"        # of a training sentence; longer : shorter side
: "${IDENTIFY:=}"                             # set to drop pairs in wrong languages (needs py3langid)
: "${MULTITASK=1}"                            # empty: no corpus for the multi-task system
: "${WORKERS:=4}"                             # processes that prepare text
: "${SHARDS:=1}"                              # parts in which the training text is parsed
: "${STANZA_TAGGER:=}" "${STANZA_PARSER:=}"   # model files, instead of Stanza's own models
: "${PARSE_DEVICE:=}"                         # cpu, cuda, … (default: a GPU if there is one)
: "${GPUS:=1}" "${MAX_TOKENS:=2048}"          # tokens a GPU and step
: "${BATCH:=8192}"                            # tokens per update: 2048 on each of 4 GPUs
: "${UPDATE_FREQ:=$((BATCH / (MAX_TOKENS * GPUS)))}"
: "${PRECISION:=}"                            # --fp16 is faster on most GPUs
: "${DEVICE:=}"                               # --cpu, to try things out
: "${LAUNCH:=}"                               # another command that starts fairseq-train on GPUS processes
: "${LR:=7e-4 transformer=1e-3}"              # authors' scripts: 1e-3 for the baseline of every task
: "${WARMUP:=8000}" "${BEAM:=4}" "${LENPEN:=0.6}"
: "${SAVE_UPDATES:=500}"                      # updates between validations
: "${VARIANT:=}"                              # name of a training with other options, before the system's in its files

TEXT="$OUT/text" BPE="$OUT/bpe" PAIR="$SOURCE-$TARGET"
DATA="$OUT/data-bin-$PAIR" RUN="$PAIR${VARIANT:+-$VARIANT}"
LANGUAGES=("$SOURCE" "$TARGET") # in the order of the alphabet, so that both directions make the same files
[[ "$SOURCE" < "$TARGET" ]] || LANGUAGES=("$TARGET" "$SOURCE")
SYSTEMS=("${TRANSFORMERS[@]}")
read -ra PRECISION_OPTIONS <<< "$PRECISION $DEVICE"
TRAIN=(fairseq-train) WORLD=(--distributed-world-size "$GPUS")
[[ -z "$LAUNCH" ]] || { read -ra TRAIN <<< "$LAUNCH" && WORLD=(); }
read -ra TEST_SETS <<< "$TEST_SET"
SPLITS=(valid test)
for ((i = 1; i < ${#TEST_SETS[@]}; i++)); do
    SPLITS+=("test$i")
done

# What sacrebleu calls a split: newstest valid|test|test1|…
newstest() {
    local number="${1#test}"
    check_split "$1"
    [[ "$1" == valid ]] && echo "$VALID_SET" || echo "${TEST_SETS[${number:-0}]}"
}

# Text up to tokens: prepare_text URL … -- CORPUS …   (CORPUS: path in the archives, without language)
prepare_text() {
    local archives="$OUT/archives" archive language split subset side
    local -a corpora=()
    run mkdir -p "$archives" "$TEXT"
    while [[ "$1" != -- ]]; do
        archive="$archives/$(basename "$1")"
        unless_there "$archive" download "$archive" "$1"
        if [[ "$archive" == *.zip ]]; then
            run python -m zipfile --extract "$archive" "$archives"
        else
            run tar --extract --gzip --file "$archive" --directory "$archives"
        fi
        shift
    done
    shift
    corpora=("$@")
    for language in "$SOURCE" "$TARGET"; do
        unless_there "$TEXT/all.raw.$language" \
            run_to "$TEXT/all.raw.$language" cat "${corpora[@]/%/.$language}"
        for split in "${SPLITS[@]}"; do
            subset="$(newstest "$split")" side=src
            [[ "$language" == "$TARGET" ]] && side=ref
            unless_there "$TEXT/$split.raw.$language" \
                run_to "$TEXT/$split.raw.$language" sacrebleu -t "$subset" -l "$PAIR" --echo "$side"
        done
    done
    tokenise_text
}

# Parallel text of WMT17 English-German: Europarl v7, Common Crawl, Rapid 2016, News Commentary v12.
wmt17_text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt17/translation-task/rapid2016.tgz \
        https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" "$OUT/archives/rapid2016.de-en" \
        "$OUT/archives/training/news-commentary-v12.de-en"
}

# Tokens of all splits from their raw text, and the training text cleaned. TOKENIZE_ja="mecab -Owakati" has Japanese
# tokenised by another program than Moses, lines from standard input to standard output; so for any language.
tokenise_text() {
    local language split setting
    local -a command
    for language in "$SOURCE" "$TARGET"; do
        setting="TOKENIZE_$language"
        command=(python "$EXAMPLES/wmt_text.py" tokenize --language "$language" --workers "$WORKERS")
        [[ -z "${!setting:-}" ]] || read -ra command <<< "${!setting}"
        for split in all "${SPLITS[@]}"; do
            unless_there "$TEXT/$split.$language" \
                run_filter "$TEXT/$split.raw.$language" "$TEXT/$split.$language" "${command[@]}"
        done
    done
    unless_there "$TEXT/train.$TARGET" run python "$EXAMPLES/wmt_text.py" clean --input "$TEXT/all" \
        --output "$TEXT/train" --source-lang "$SOURCE" --target-lang "$TARGET" --max-words "$MAX_WORDS" \
        --max-ratio "$MAX_RATIO" --workers "$WORKERS" ${IDENTIFY:+--identify}
}

parse() { # text, trees, shard
    run fairseq-syntax parse --input "$1" --output "$2" --shard "$3" --parser-language "$SOURCE" \
        ${STANZA_TAGGER:+--parser-tagger "$STANZA_TAGGER"} ${STANZA_PARSER:+--parser-model "$STANZA_PARSER"} \
        ${PARSE_DEVICE:+--parser-device "$PARSE_DEVICE"}
}

# Trees of the source side: prepare_trees [SHARD]. Without SHARD all shards, one after the other.
prepare_trees() {
    local shard split trees
    [[ -z "${1:-}" ]] || [[ "$1" =~ ^[0-9]+$ && "$1" -lt "$SHARDS" ]] || stop "shard $1: give 0 to $((SHARDS - 1))"
    for ((shard = 0; shard < SHARDS; shard++)); do
        [[ -n "${1:-}" && "$1" != "$shard" ]] && continue
        trees="$TEXT/train.$SOURCE.$shard-of-$SHARDS.conllu.gz"
        unless_there "$trees" parse "$TEXT/train.$SOURCE" "$trees" "$shard/$SHARDS"
        [[ "$shard" == 0 ]] || continue
        for split in "${SPLITS[@]}"; do
            trees="$TEXT/$split.$SOURCE.conllu.gz"
            unless_there "$trees" parse "$TEXT/$split.$SOURCE" "$trees" 0/1
        done
    done
}

# Codes of both languages together; subword-nmt writes them one by one, so they get their name when all are there.
joint_codes() {
    run subword-nmt learn-joint-bpe-and-vocab -s "$MERGES" --input "${LANGUAGES[@]/#/$TEXT/train.}" \
        -o "$OUT/bpe.codes.part" --write-vocabulary "${LANGUAGES[@]/#/$OUT/vocab.}"
    run mv "$OUT/bpe.codes.part" "$OUT/bpe.codes"
}

# Cut the words of all splits: apply_codes CODES   (CODES: path of the codes, with % for the language)
apply_codes() {
    local split language
    for split in train "${SPLITS[@]}"; do
        for language in "$SOURCE" "$TARGET"; do
            unless_there "$BPE/$split.$language" run_filter "$TEXT/$split.$language" "$BPE/$split.$language" \
                subword-nmt apply-bpe -c "${1/\%/$language}"
        done
    done
}

# Prefixes of the test sets, as fairseq-preprocess takes them: test_prefixes FOLDER
test_prefixes() {
    local -a prefixes=("${SPLITS[@]:1}")
    prefixes=("${prefixes[@]/#/$1/}")
    (IFS=, && echo "${prefixes[*]}")
}

# Subwords of both languages together, and everything binarized.
prepare_data() {
    local shard split
    local -a shards=()
    run mkdir -p "$BPE"
    for ((shard = 0; shard < SHARDS; shard++)); do
        shards+=("$TEXT/train.$SOURCE.$shard-of-$SHARDS.conllu.gz")
    done
    run_to "$BPE/train.$SOURCE.conllu.gz" cat "${shards[@]}" # gzip files can be joined
    for split in "${SPLITS[@]}"; do
        run cp "$TEXT/$split.$SOURCE.conllu.gz" "$BPE/" # trees are of words: they serve any segmentation
    done
    unless_there "$OUT/bpe.codes" joint_codes
    apply_codes "$OUT/bpe.codes"
    run fairseq-syntax preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --joined-dictionary \
        --workers "$WORKERS" --no-distances --trainpref "$BPE/train" --validpref "$BPE/valid" \
        --testpref "$(test_prefixes "$BPE")" --destdir "$DATA" --overwrite # distances are computed when they are needed
    [[ -z "$MULTITASK" ]] || multitask_data "$BPE" "$OUT/bpe-multitask-$PAIR" "$DATA-multitask" "${SPLITS[@]}"
}

# All steps or one: prepare [text | parse [SHARD] | binarize]; the recipe defines `text`.
prepare() {
    case "${1:-all}" in
    all)
        text
        prepare_trees
        prepare_data
        ;;
    text) text ;;
    parse) prepare_trees "${2:-}" ;;
    binarize) prepare_data ;;
    *) stop "step $1: choose text, parse [SHARD] or binarize; nothing does all three" ;;
    esac
}

# What a setting is for a system: setting SYSTEM VALUE [SYSTEM=VALUE …]; the first value is that of systems not named
setting() {
    local system="$1" value="$2" other
    for other in "${@:3}"; do
        [[ "$other" != "$system="* ]] || value="${other#*=}"
    done
    echo "$value"
}

# Train one system: train SYSTEM [options of fairseq-train]
train() {
    local system="${1:-}" lr beta2
    local -a lrs betas
    check_system "$system"
    read -ra lrs <<< "$LR"
    read -ra betas <<< "$BETA2"
    lr="$(setting "$system" "${lrs[@]}")" beta2="$(setting "$system" "${betas[@]}")"
    if ((UPDATE_FREQ * MAX_TOKENS * GPUS != BATCH)); then
        stop "$GPUS GPUs x MAX_TOKENS=$MAX_TOKENS x UPDATE_FREQ=$UPDATE_FREQ are not BATCH=$BATCH tokens per update;" \
            "choose numbers whose product it is"
    fi
    system_options "$system" wmt_en_de "$PASCAL_HEADS" "$PARENT_IGNORING" "$DATA"
    run "${TRAIN[@]}" "$DATA_BIN" --user-dir "$USER_DIR" "${ARCH[@]}" "${SHARING[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --criterion "$CRITERION" --label-smoothing 0.1 \
        --dropout "$DROPOUT" --optimizer adam --adam-betas "(0.9, $beta2)" --adam-eps 1e-9 --clip-norm 0.0 \
        --weight-decay 0.0 --lr "$lr" --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates "$WARMUP" \
        --max-tokens "$MAX_TOKENS" --update-freq "$UPDATE_FREQ" "${WORLD[@]}" --max-update "$MAX_UPDATE" \
        "${PRECISION_OPTIONS[@]}" --seed "$SEED" --log-format simple --log-interval 100 \
        --save-interval-updates "$SAVE_UPDATES" --keep-interval-updates 1 --no-epoch-checkpoints \
        --save-dir "$OUT/checkpoints/$RUN-$system-$SEED" --log-file "$OUT/$RUN-$system-$SEED.log" "${@:2}"
}

# Translate and score: evaluate SYSTEM [SPLIT]
evaluate() {
    check_system "${1:-}"
    system_options "$1" wmt_en_de "$PASCAL_HEADS" "$PARENT_IGNORING" "$DATA"
    translate "$1" "${2:-test}" "$DATA_BIN" checkpoint_last.pt
    score "$NAME" "${2:-test}"
}

# Translate a split: translate SYSTEM SPLIT DATA CHECKPOINT.  Beginning of the names of the translations: NAME
translate() {
    check_split "$2"
    NAME="$OUT/$RUN-$1-$SEED.$2"
    run_to "$NAME.generated" fairseq-generate "$3" --user-dir "$USER_DIR" "${PRECISION_OPTIONS[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$2" \
        --path "$OUT/checkpoints/$RUN-$1-$SEED/$4" --beam "$BEAM" --lenpen "$LENPEN" --max-tokens 4096 --remove-bpe
}

# Train a recurrent system, with batches of sentences: train_sentences SYSTEM OPTION …
train_sentences() {
    local system="${1:-}"
    if ((BATCH_SIZE % GPUS)); then
        stop "BATCH_SIZE=$BATCH_SIZE sentences cannot be shared equally by GPUS=$GPUS"
    fi
    run "${TRAIN[@]}" "$DATA" --user-dir "$USER_DIR" --arch "$system" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --batch-size $((BATCH_SIZE / GPUS)) "${WORLD[@]}" \
        "${PRECISION_OPTIONS[@]}" --seed "$SEED" \
        --save-dir "$OUT/checkpoints/$RUN-$system-$SEED" --log-file "$OUT/$RUN-$system-$SEED.log" "${@:2}"
}

# Put translations in order, make text of their tokens, score it: score NAME SPLIT
#   NAME.generated: the output of fairseq-generate
score() {
    hypotheses "$1.generated" "$1.hypotheses"
    run_filter "$1.hypotheses" "$1.$TARGET" \
        python "$EXAMPLES/wmt_text.py" detokenize --language "$TARGET" --workers "$WORKERS"
    run_to "$1.bleu" sacrebleu -t "$(newstest "$2")" -l "$PAIR" --input "$1.$TARGET" --metrics bleu
    [[ -n "$DRY_RUN" ]] || cat "$1.bleu"
}
