import { type Level, parentsOf } from './levels.ts'

export const bashScript = (program: string, levels: readonly Level[]): string => `\
# Completes ${program} in bash. Load it with: eval "$(${program} completion bash)"
_${identifier(program)}() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} cmd= index=$((COMP_CWORD - 1)) offered= each
  # Bash takes --flag=value apart.
  if [[ $word == = ]]; then word=; elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD > 1)); then cmd=\${COMP_WORDS[1]} index=$((COMP_CWORD - 2)); fi
  if ((COMP_CWORD > 2)); then
    case $cmd in ${groupsOf(levels)}) cmd="$cmd \${COMP_WORDS[2]}" index=$((COMP_CWORD - 3)) ;; esac
  fi
  if ((COMP_CWORD > 3)); then
    for each in "\${COMP_WORDS[@]:3:COMP_CWORD-3}"; do
${actionCases(levels)}
    done
  fi
${lookup(levels)}
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o default -F _${identifier(program)} ${program}`

export const zshScript = (program: string, levels: readonly Level[]): string => `\
# Completes ${program} in zsh. Load it after compinit, with: eval "$(${program} completion zsh)"
_${identifier(program)}() {
  local word=$words[CURRENT] previous=$words[CURRENT-1] cmd= index=$((CURRENT - 2)) offered= each
  if ((CURRENT > 2)); then cmd=$words[2] index=$((CURRENT - 3)); fi
  if ((CURRENT > 3)); then
    case $cmd in ${groupsOf(levels)}) cmd="$cmd $words[3]" index=$((CURRENT - 4)) ;; esac
  fi
  if ((CURRENT > 4)); then
    for each in "\${(@)words[4,CURRENT-1]}"; do
${actionCases(levels)}
    done
  fi
${lookup(levels)}
  if [[ -n $offered ]]; then compadd -- \${=offered}; else _files; fi
}
compdef _${identifier(program)} ${program}`

const identifier = (program: string): string => program.replaceAll('-', '_')

/** Groups: their second word is part of the command. */
const groupsOf = (levels: readonly Level[]): string =>
  parentsOf(levels, false)
    .map(([group]) => group)
    .join(' | ')

/** Appends the first action among the words to the command. */
const actionCases = (levels: readonly Level[]): string =>
  parentsOf(levels, true)
    .map(([command, actions]) => {
      const patterns = actions.map((action) => `'${command} ${action}'`).join(' | ')
      return `      case "$cmd $each" in ${patterns}) cmd="$cmd $each" ;; esac`
    })
    .join('\n')

/** Sets `offered` by the command, the previous word and the argument's index. */
function lookup(levels: readonly Level[]): string {
  const flags = levels.flatMap(({ path, flags }) => flags.map((flag) => ({ ...flag, pattern: `${path} ${flag.word}` })))
  const free = flags.filter(({ takesValue, values }) => takesValue && values.length === 0)
  return `\
  case "$cmd $previous" in
    ${free.map(({ pattern }) => `'${pattern}'`).join(' | ')}) ;;
${cases(
  4,
  flags.map(({ pattern, values }) => [`'${pattern}'`, values]),
)}
    *)
      case "$word" in
        -*)
          case "$cmd" in
${cases(
  12,
  levels.map(({ path, flags }) => [`'${path}'`, wordsOf(flags)]),
)}
          esac
          ;;
        *)
          case "$cmd $index" in
${cases(12, levels.flatMap(argumentCases))}
          esac
          ;;
      esac
      ;;
  esac`
}

type Case = readonly [pattern: string, words: readonly string[]]

/** Without arguments, offers the flags. */
const argumentCases = ({ path, arguments: each, flags }: Level): Case[] =>
  each === undefined
    ? [[`'${path} '*`, wordsOf(flags)]]
    : each.map((words, index) => [`'${path} ${index}'`, wordsOf(words)])

const wordsOf = (words: readonly { readonly word: string }[]): string[] => words.map(({ word }) => word)

const cases = (indent: number, all: readonly Case[]): string =>
  all
    .filter(([, words]) => words.length > 0)
    .map(([pattern, words]) => `${' '.repeat(indent)}${pattern}) offered='${words.join(' ')}' ;;`)
    .join('\n')
