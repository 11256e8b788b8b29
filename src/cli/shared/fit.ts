/** Wraps a help text, rejoining paragraphs and keeping columns. Usage and examples stay whole, to copy. */
export function fit(text: string, width: number): string {
  const [help = '', ...examples] = text.split(/(?=\nExamples?:\n)/)
  const joined = help.replace(/(?<=^\S[^\n]*[^:\n])\n(?=\S)/gm, ' ')
  return [
    joined
      .split('\n')
      .map((line) => fitLine(line, width))
      .join('\n'),
    ...examples,
  ].join('')
}

function fitLine(line: string, width: number): string {
  if (line.length <= width || line.startsWith('Usage:')) return line
  const [left = ''] = /^ +\S.*? {2,}(?=\S)|^ */.exec(line) ?? []
  const lines: string[] = []
  for (const word of line.slice(left.length).split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || left.length + last.length + word.length + 1 > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.map((each, index) => (index === 0 ? left : ' '.repeat(left.length)) + each).join('\n')
}
