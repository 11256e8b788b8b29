import { pageOf } from '../pages.ts'

/** A row of a table of options. */
export interface DefaultRow {
  /** One option, or several with the same default. */
  readonly options: readonly string[]
  /** The default as a value, such as 2500 for `2,500`; `undefined` if the table has words, such as `required`. */
  readonly value: unknown
}

/** A table of options with their defaults, or a sentence that names some. */
export interface DefaultTable {
  readonly page: string
  /** The function that takes the options. */
  readonly of: string
  readonly rows: readonly DefaultRow[]
}

const hour = 3_600_000

/** Reads a default: a number, a time in hours, or a value in code. Words are `undefined`. */
function readValue(cell: string): unknown {
  const [text = ''] = cell.split(': ')
  const [, code] = /^`([^`]*)`$/.exec(cell) ?? []
  if (/^\d+ h$/.test(text)) return Number.parseInt(text, 10) * hour
  if (/^[\d,]+$/.test(text)) return Number(text.replaceAll(',', ''))
  return code !== undefined && /^['{]|^(true|false)$/.test(code) ? new Function(`return (${code})`)() : code
}

const readRow = (line: string): DefaultRow => {
  const [, first = '', second = ''] = line.split('|').map((cell) => cell.trim())
  return { options: Array.from(first.matchAll(/`(\w+)`/g), ([, option = '']) => option), value: readValue(second) }
}

/** The tables of a page whose header is `Option | Default`. They are named by their header or the heading before them. */
function tablesOf(page: string): readonly DefaultTable[] {
  const { text } = pageOf(page)
  const tables = text.matchAll(/^\| Option(?: of `(\w+)`)? \| Default \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)
  return Array.from(tables, ({ 1: named, 2: rows = '', index }) => {
    const [heading] = text.slice(0, index).match(/^## .*$(?![\s\S]*^## )/m) ?? []
    return { page, of: named ?? heading?.slice(3) ?? '', rows: rows.trim().split('\n').map(readRow) }
  })
}

/**
 * The defaults that a sentence names: the groups `option` and `value` of each match.
 * @param named the option, if the sentence does not name it
 */
function sentenceOf(page: string, of: string, sentence: RegExp, named = ''): DefaultTable {
  const found = Array.from(pageOf(page).text.matchAll(sentence), ({ groups = {} }) => groups)
  const rows = found.map(({ option = named, value = '' }) => ({ options: [option], value: readValue(value) }))
  return { page, of, rows }
}

const pages = ['configuration', 'client', 'emulator', 'verify']

export const defaultTables: readonly DefaultTable[] = [
  ...pages.flatMap(tablesOf),
  sentenceOf('configuration', 'lruStore', /(?<=`lruStore\(.*)`(?<option>\w+)` \((?<value>[\d,]+(?: h)?)\b[^)]*\)/g),
  sentenceOf(
    'configuration',
    'receiver.close',
    /`receiver\.close\(\{ (?<option>\w+) \}\)` takes (?<value>[\d,]+) ms by default/g,
  ),
  sentenceOf('verify', 'hmacSignature.timestamp', /tolerance in seconds \((?<value>\d+)\)/g, 'toleranceSeconds'),
]
