import type { DeadLetter, UnreadableDelivery } from '../../../index.ts'
import { type Paint, plain, table } from '../../shared/text.ts'

const columns = ['died', 'type', 'media', 'attempts', 'key']

/** Formats dead letters for people: one row each, followed by the last error of every handler that failed. */
export function deadLettersText(deadLetters: readonly DeadLetter[], paint: Paint): string {
  const [header = '', ...rows] = table([columns, ...deadLetters.map(cells)]).split('\n')
  const lines = rows.flatMap((row, index) => [row, ...errorLines(deadLetters[index] as DeadLetter)])
  return [paint('dim', header), ...lines].join('\n')
}

const cells = ({ diedAt, event, attempts, key }: DeadLetter): string[] => [
  diedAt.toISOString(),
  plain(event?.type ?? '(unreadable)'),
  plain(event?.mediaId ?? '-'),
  `${attempts}`,
  // The last column, because most keys are long.
  shellQuoted(key),
]

function errorLines({ unreadable, failures }: DeadLetter): string[] {
  if (unreadable !== undefined) return [`  could not be parsed: ${inOneLine(unreadable.reason)}`]
  return failures.map(({ handler, message }) => `  ${inOneLine(handler)}: ${inOneLine(message)}`)
}

const inOneLine = (text: string): string => plain(text.replace(/\s*\n\s*/g, ' ').slice(0, 200))

/** Formats a dead letter for machines. */
export const deadLetterJson = ({ unreadable, ...deadLetter }: DeadLetter) => ({
  ...deadLetter,
  ...(unreadable && { unreadable: unreadableJson(unreadable) }),
})

const unreadableJson = ({ body, ...unreadable }: UnreadableDelivery) => ({
  ...unreadable,
  ...bodyJson(Buffer.from(body)),
})

/** Bytes that are not UTF-8 would be lost in a text. */
function bodyJson(bytes: Buffer) {
  const body = bytes.toString()
  return Buffer.from(body).equals(bytes) ? { body } : { bodyBase64: bytes.toString('base64') }
}

/** Quotes a text as an argument to paste: a shell passes it on unchanged, and it cannot control the terminal. */
export function shellQuoted(text: string): string {
  if (/^[\w.:@/+,-]+$/.test(text)) return text
  if (plain(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${Array.from(text, escaped).join('')}'`
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') return `\\${character}`
  if (plain(character) === character) return character
  // In octal, because shells read exactly three digits of it.
  return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
