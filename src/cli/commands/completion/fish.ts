import { type Level, parentsOf } from './levels.ts'

export const fishScript = (program: string, levels: readonly Level[]): string => `\
# Completes ${program} in fish. Load it with: ${program} completion fish | source
function ${predicate(program)} --description 'true if these words are the command of the line'
    set -l words (commandline -opc)[2..]
    set -l cmd $words[1]
    switch "$cmd"
${parentsOf(levels, false)
  .map(([group]) => `        case ${group}\n            set cmd $words[1..2]`)
  .join('\n')}
${parentsOf(levels, true).map(actionCase).join('\n')}
    end
    test "$cmd" = "$argv"
end
${levels.flatMap((level) => linesOf(program, level)).join('\n')}`

const actionCase = ([command, actions]: readonly [string, readonly string[]]): string => `\
        case ${command}
            for word in $words[3..]
                if contains -- $word ${actions.join(' ')}
                    set cmd $cmd $word
                    break
                end
            end`

const predicate = (program: string): string => `__${program.replaceAll('-', '_')}_is`

function linesOf(program: string, { path, arguments: each = [], flags }: Level): string[] {
  const words = path === '' ? [] : path.split(' ')
  const isHere = path === '' ? typed(0) : `${predicate(program)} ${path}`
  const line = (condition: string, ...rest: string[]) =>
    [`complete -c ${program} -n ${quoted(condition)}`, ...rest].join(' ')
  return [
    ...each.flatMap((choices, index) => {
      const isNext = path === '' ? isHere : `${isHere}; and ${typed(words.length + index)}`
      return choices.map(({ word, help }) => line(isNext, `-f -a ${word}`, described(help)))
    }),
    ...flags.map(({ word, help, takesValue, values }) => {
      const value = values.length > 0 ? `-x -a ${quoted(values.join(' '))}` : takesValue ? '-r' : ''
      return line(isHere, `-l ${word.slice(2)}`, value, described(help))
    }),
  ].map((each) => each.replace(/ {2,}(?=-)/g, ' ').trimEnd())
}

/** True after this many words, before the one being typed. */
const typed = (words: number): string => `test (count (commandline -opc)) -eq ${1 + words}`

const described = (help: string | undefined): string => (help === undefined ? '' : `-d ${quoted(help)}`)

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`
