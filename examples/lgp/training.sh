# The systems of Hashimoto & Tsuruoka (2017) on any data: shared by the recipes lgp and aspec, whose settings.sh source it,
# choose what differs between them and call `settle`.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
SYSTEMS=(seq lgp lgp_plus seq_plus dep dep_plus uni uni_plus) # the first one is the baseline
EWT=https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/master

# The settings of both recipes; each can be overridden from the environment. Numbers are the paper's unless said otherwise.
#   WORK: folder of the recipe's files;  DEVICE: --cpu, or nothing
settle() {
    : "${TREEBANK:=$OUT/treebank}"    # folder with train.conllu and valid.conllu
    : "${FIRST_K:=10000}"             # sentences of it for the parser of lgp_plus, seq_plus, …, or all
    : "${DEP_FIRST_K:=$FIRST_K}"      # the same, of the parser that parses for dep
    : "${PARSER_EPOCHS:=20}"          # passes, over tags and over trees in turns
    : "${PARSER_SEED:=1}"
    : "${PARSE_DEVICE:=}"             # cpu, cuda, … (default: a GPU if there is one)
    : "${WORD_VECTORS:=}" "${NGRAM_VECTORS:=}" # files of pre-trained vectors, of which the paper has some
    : "${ARCH:=lgp_small}"
    : "${MIN_FREQUENCY:=2}" "${MIN_FREQUENCY_TARGET:=2}" # of words that have a vector of their own
    : "${CRITERION:=blackout}" "${NOISE:=2000}"
    : "${MOMENTUM:=0.75}" "${LR:=1.0}"
    : "${HALVE_AFTER:=5}"             # epochs before the learning rate may fall: the author's code
    : "${BATCH_SIZE:=128}"            # sentences per update
    : "${MAX_EPOCH:=60}"              # half epochs; ours
    : "${BEAM:=12}" "${BATCH_GENERATE:=32}"
    : "${PRIOR:=auto}"                # probability of lengths, as in the paper, or off
    : "${AVERAGED:=}"                 # set to translate with the mean of checkpoints, which `average` makes
    : "${COPY_UNKNOWN:=}"             # set to copy source words to where the model says "unknown"
    : "${WORKERS:=2}"
    TEXT="$WORK/text" DATA_BIN="$WORK/data-bin" DICTIONARY="$WORK/dict.$SOURCE.txt"
    PARSER="$(parser_folder "$FIRST_K")/checkpoint_last.pt"
    VECTORS=(${WORD_VECTORS:+--lgp-word-vectors "$WORD_VECTORS"} ${NGRAM_VECTORS:+--lgp-ngram-vectors "$NGRAM_VECTORS"})
    RUNNING=(--num-workers 0 --log-format simple --log-interval 50 --distributed-world-size 1)
    LOSS=(--criterion "$CRITERION")
    case "$CRITERION" in
    cross_entropy) ;;
    blackout) LOSS+=(--blackout-k "$NOISE" --blackout-alpha 0.4 --blackout-share sentence) ;; # alpha: the author's code
    *) stop "CRITERION=$CRITERION: choose cross_entropy or blackout" ;;
    esac
    [[ " auto off " == *" $PRIOR "* ]] || stop "PRIOR=$PRIOR: choose auto or off"
}

# Folder of a parser that has learned from K sentences, or all: parser_folder K
parser_folder() {
    echo "$WORK/checkpoints/parser-$1-$PARSER_SEED"
}

# A system and its seed; those that start from a parser name it, so that no other one is gone on with: system_name SYSTEM
system_name() {
    [[ "$1" != *_plus ]] || set -- "$1-$FIRST_K-$PARSER_SEED"
    echo "$1-$SEED"
}

# Beginning of the names of a system's translations, which tell how they were made: translation_name SYSTEM SPLIT
translation_name() {
    echo "$WORK/$(system_name "$1")${AVERAGED:+-averaged}-prior-$PRIOR${COPY_UNKNOWN:+-copied}.$2"
}

# The first N lines, or all: first_lines N FILE GOAL
first_lines() {
    [[ "$1" == all || -n "$DRY_RUN" || "$(wc -l < "$2")" -ge "$1" ]] || stop "PAIRS=$1: $2 has $(wc -l < "$2") lines"
    run_to "$3" head -n "${1/all/-0}" "$2"
}

# The first N trees of CoNLL-U, or all: first_trees N FILE GOAL
first_trees() {
    run_to "$3" awk -v RS= -v ORS='\n\n' "NR <= ${1/all/1e9}" "$2"
}

# UD English-EWT, from UD=folder or downloaded, unless there is a treebank.
treebank() {
    local split name goal
    run mkdir -p "$TREEBANK"
    for split in train valid; do
        name="${split/valid/dev}" goal="$TREEBANK/$split.conllu"
        DATA="${UD:-}" fetch "$goal" "en_ewt-ud-$name.conllu" "$EWT/en_ewt-ud-$name.conllu"
    done
}

# Trees of the source side, by a parser of our own.
parse() {
    local split trees
    for split in train "${SPLITS[@]}"; do
        trees="$WORK/trees-$DEP_FIRST_K-$PARSER_SEED/$split.$SOURCE.conllu"
        run mkdir -p "$(dirname "$trees")"
        unless_there "$trees" run fairseq-syntax parse --input "$TEXT/$split.$SOURCE" --output "$trees" \
            --parser checkpoint --parser-model "$(parser_folder "$DEP_FIRST_K")/checkpoint_last.pt" \
            ${PARSE_DEVICE:+--parser-device "$PARSE_DEVICE"}
        run cp "$trees" "$TEXT/$split.$SOURCE.conllu"
    done
}

# Text, trees unless PARSES=none, and probabilities of lengths: what has not been seen has none.
binarize() {
    local program=(fairseq-syntax preprocess --no-distances) tests=("${SPLITS[@]:1}")
    [[ "$PARSES" != none ]] || program=(fairseq-preprocess)
    tests=("${tests[@]/#/$TEXT/}")
    run rm -rf "$DATA_BIN"
    run "${program[@]}" --source-lang "$SOURCE" --target-lang "$TARGET" --workers "$WORKERS" \
        --trainpref "$TEXT/train" --validpref "$TEXT/valid" --testpref "$(IFS=, && echo "${tests[*]}")" \
        --srcdict "$DICTIONARY" --thresholdtgt "$MIN_FREQUENCY_TARGET" --destdir "$DATA_BIN"
    run fairseq-syntax length-prior "$DATA_BIN" --source-lang "$SOURCE" --target-lang "$TARGET" --overwrite
}

# All steps or one: prepare [text | trees | binarize].  The recipe defines `text`, and `given_trees` if it has any.
#   PARSES   trees of the source, for the system dep. own: by a parser that is trained for it;  given: `given_trees`;  none
prepare() {
    local extra=("${SPLITS[@]/#/$TEXT/}")
    [[ " given own none " == *" $PARSES "* ]] || stop "PARSES=$PARSES: choose given, own or none"
    case "${1:-all}" in
    all)
        prepare text
        [[ "$PARSES" != own ]] || train_parser "$DEP_FIRST_K"
        prepare trees
        prepare binarize
        ;;
    text)
        run mkdir -p "$TEXT"
        text
        # rare and unseen words of the source, too, are read by their spelling
        run python "$EXAMPLES/lgp/dictionary.py" "$DICTIONARY" "$TEXT/train.$SOURCE" "${extra[@]/%/.$SOURCE}"
        treebank
        ;;
    trees)
        [[ "$PARSES" != given ]] || given_trees
        [[ "$PARSES" != own ]] || parse
        ;;
    binarize) binarize ;;
    *) stop "step $1: choose text, trees or binarize; nothing does all three" ;;
    esac
}

# The parser of lgp_plus, seq_plus, …: pretrain [options of fairseq-train]
pretrain() {
    train_parser "$FIRST_K" "$@"
}

# A parser that learns from K sentences of the treebank: train_parser K [options of fairseq-train]
# Passes over tags and over trees have batches of 25 and 15 sentences (Hashimoto et al. 2017).
train_parser() {
    local folder first=(--lgp-first-k "$1")
    folder="$(parser_folder "$1")"
    [[ "$1" != all ]] || first=()
    there "$DICTIONARY" "prepare $RECIPE first, or its step text"
    run mkdir -p "$WORK"
    run fairseq-train "$TREEBANK" --user-dir "$USER_DIR" --task dependency_parsing "${DEVICE[@]}" --arch lgp_parser \
        --lgp-src-min-freq "$MIN_FREQUENCY" "${VECTORS[@]}" --criterion joint_parsing \
        --optimizer lgp_sgd --momentum 0 --lr 1.0 --lr-scheduler inverse_epoch --lgp-lr-rho 0.3 --lgp-pass-clip-norms 1,2 \
        --sentence-avg --lgp-pos-batch-size 25 --lgp-dep-batch-size 15 --batch-size 100 --max-epoch "$PARSER_EPOCHS" \
        "${first[@]}" --lgp-strip-subtypes ${LOWERCASE:+--lgp-lowercase} --lgp-mt-dict "$DICTIONARY" \
        --best-checkpoint-metric las --maximize-best-checkpoint-metric --no-epoch-checkpoints "${RUNNING[@]}" \
        --seed "$PARSER_SEED" --save-dir "$folder" --log-file "$WORK/$(basename "$folder").log" "${@:2}"
}

# A system: train SYSTEM [options of fairseq-train].  Those with _plus start from the parser.
train() {
    local system="${1:-}" graph
    check_system "$system"
    there "$DATA_BIN" "prepare $RECIPE first"
    graph=(--lgp-graph "${system%_plus}")
    [[ "$system" != lgp* ]] || graph=(--lgp-graph latent)
    [[ "$system" != *_plus ]] || graph+=(--lgp-parser-path "$PARSER")
    [[ "$system" != *_plus ]] || there "$PARSER" "pretrain $RECIPE first, with the same FIRST_K"
    run mkdir -p "$WORK"
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --task syntax_translation "${DEVICE[@]}" --arch "$ARCH" \
        --lgp-src-min-freq "$MIN_FREQUENCY" "${graph[@]}" "${VECTORS[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --optimizer lgp_sgd --momentum "$MOMENTUM" --weight-decay 1e-6 \
        --lr "$LR" --lr-scheduler halve_on_drop --lgp-halve-after "$HALVE_AFTER" --clip-norm 1.0 --sentence-avg \
        --batch-size "$BATCH_SIZE" "${LOSS[@]}" --epoch-parts 2 --max-epoch "$MAX_EPOCH" --dropout 0.2 \
        --eval-bleu --eval-tokenized-bleu --eval-bleu-args '{"beam":1,"max_len_a":2,"max_len_b":20}' \
        --best-checkpoint-metric bleu --maximize-best-checkpoint-metric "${RUNNING[@]}" --seed "$SEED" \
        --save-dir "$WORK/checkpoints/$(system_name "$system")" --log-file "$WORK/$(system_name "$system").log" "${@:2}"
}

# The mean of a system's checkpoints: average SYSTEM [options of fairseq-syntax average]
average() {
    check_system "${1:-}"
    local folder
    folder="$WORK/checkpoints/$(system_name "$1")"
    there "$folder" "train $1 first"
    run fairseq-syntax average --input "$folder" --output "$folder/average.pt" --overwrite "${@:2}"
}

# The checkpoint to look at, or stop: trained SYSTEM
trained() {
    local folder
    folder="$WORK/checkpoints/$(system_name "$1")"
    there "$folder/checkpoint_best.pt" "train $1 first"
    [[ -z "$AVERAGED" ]] || there "$folder/average.pt" "average $RECIPE $1 first"
    [[ -z "$AVERAGED" ]] && echo "$folder/checkpoint_best.pt" || echo "$folder/average.pt"
}

# Translate, score, and measure the perplexity: evaluate SYSTEM[:SYSTEM …] [SPLIT]
# Several systems translate together, which is the paper's ensemble; a perplexity is of one.
evaluate() {
    local system="${1:-}" split="${2:-test}" name checkpoint="" parts part trees=()
    IFS=: read -ra parts <<< "$system"
    for part in "${parts[@]:-}"; do
        check_system "$part"
        checkpoint+="${checkpoint:+:}$(trained "$part")"
    done
    check_split "$split"
    name="$(translation_name "${system//:/+}" "$split")"
    local model=("$DATA_BIN" --user-dir "$USER_DIR" --task syntax_translation "${DEVICE[@]}"
        --source-lang "$SOURCE" --target-lang "$TARGET" --path "$checkpoint")
    local search=(--beam "$BEAM" --batch-size "$BATCH_GENERATE" --max-len-a 2 --max-len-b 20 --length-prior "$PRIOR")
    if [[ -z "$COPY_UNKNOWN" ]]; then
        run_to "$name.generated" fairseq-generate "${model[@]}" --gen-subset "$split" "${search[@]}"
    else # which fairseq-generate does not do with binarized text, so the text is given
        [[ "$system" != *dep* ]] || trees=(--parser conllu --parser-model "$TEXT/$split.$SOURCE.conllu")
        run_to "$name.generated" fairseq-interactive "${model[@]}" --input "$TEXT/$split.$SOURCE" "${trees[@]}" \
            --buffer-size 1000 --replace-unk '' "${search[@]}"
    fi
    bleu_of_tokens "$name" "$TEXT/$split.$TARGET"
    ((${#parts[@]} == 1)) || return 0
    run_to "$name.validated" fairseq-validate "${model[@]}" --valid-subset "$split" --batch-size "$BATCH_SIZE" \
        --log-format simple
    [[ -n "$DRY_RUN" ]] || sed -n 's/.* valid on .* | ppl \([0-9.]*\) .*/perplexity: \1/p' "$name.validated"
}

# BLEU, RIBES and significance beside seq, of all systems that have been evaluated: compare [SPLIT] [options]
compare() {
    local split="${1:-test}" system name systems=()
    check_split "$split"
    for system in "${SYSTEMS[@]}"; do
        name="$(translation_name "$system" "$split").generated"
        [[ -z "$DRY_RUN" && ! -s "$name" ]] || systems+=(--system "$system" "$name")
    done
    [[ "${systems[1]:-}" == seq && ${#systems[@]} -gt 3 ]] ||
        fail "evaluate seq and another system first, with the same AVERAGED, PRIOR and COPY_UNKNOWN"
    name="$(translation_name comparison "$split")"
    run_to "$name.txt" fairseq-syntax compare "${systems[@]}" --baseline seq \
        --reference "$TEXT/$split.$TARGET" --source "$TEXT/$split.$SOURCE" "${@:2}"
    [[ -n "$DRY_RUN" ]] || cat "$name.txt"
}

# How near a system's graphs are to a treebank's trees, and one of them drawn: graph lgp|lgp_plus|parser [options]
#   SENTENCE   number of the sentence to draw
graph() {
    local name gold="$TREEBANK/valid.conllu" model
    case "${1:-}" in
    lgp | lgp_plus) name="$WORK/$(system_name "$1")${AVERAGED:+-averaged}" model=("$DATA_BIN" --path "$(trained "$1")") ;;
    parser) name="$WORK/parser-$FIRST_K-$PARSER_SEED" model=("$TREEBANK" --path "$PARSER") ;;
    *) stop "${1:+system $1: }give lgp, lgp_plus or parser; no other one learns a graph" ;;
    esac
    model+=("${DEVICE[@]}" --decoder eisner)
    run_to "$name.attachment.txt" fairseq-syntax attachment "${model[@]}" --gold "$gold" "${@:2}"
    [[ -n "$DRY_RUN" ]] || cat "$name.attachment.txt"
    run fairseq-syntax look "${model[@]}" --input "$gold" --sentence "${SENTENCE:-3}" --kind tree --draw "$name.tree.svg" \
        --overwrite
}
