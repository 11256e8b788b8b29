import type { DeadLetter, UnreadableDelivery } from '../../../index.ts'
import { maskedUrl } from '../../shared/mask.ts'
import { type Paint, plain, table } from '../../shared/text.ts'

const columns = ['died', 'type', 'media', 'attempts', 'key']

/** Dead letters for people: a row each, and under it what every handler failed with at last. */
export function deadLettersText(deadLetters: readonly DeadLetter[], paint: Paint): string {
  const [header = '', ...rows] = table([columns, ...deadLetters.map(cells)]).split('\n')
  const parts = rows.flatMap((row, index) => [row, ...failures(deadLetters[index] as DeadLetter)])
  return [paint('dim', header), ...parts].join('\n')
}

const cells = ({ diedAt, event, attempts, key }: DeadLetter): string[] => [
  diedAt.toISOString(),
  plain(event?.type ?? '(unreadable)'),
  plain(event?.mediaId ?? '-'),
  `${attempts}`,
  // As the last, since most are long.
  shellQuoted(key),
]

function failures({ unreadable, failures }: DeadLetter): string[] {
  if (unreadable !== undefined) return [`  could not be read: ${inOneLine(unreadable.reason)}`]
  return failures.map(({ handler, message }) => `  ${inOneLine(handler)}: ${inOneLine(message)}`)
}

const inOneLine = (text: string): string => plain(text.replace(/\s*\n\s*/g, ' ').slice(0, 200))

/** A dead letter for machines: all that is known of it, but for what may be a secret. */
export const deadLetterJson = ({ unreadable, ...deadLetter }: DeadLetter) => ({
  ...deadLetter,
  ...(unreadable && { unreadable: unreadableJson(unreadable) }),
})

const unreadableJson = ({ url, body, ...unreadable }: UnreadableDelivery) => ({
  ...unreadable,
  url: maskedUrl(url),
  ...bodyJson(Buffer.from(body)),
})

/** Bytes that are no UTF-8 would not survive as a text. */
function bodyJson(bytes: Buffer) {
  const body = bytes.toString()
  return Buffer.from(body).equals(bytes) ? { body } : { bodyBase64: bytes.toString('base64') }
}

/** A text as an argument to paste: the shell passes it on as it is, and it does not steer the terminal. */
export function shellQuoted(text: string): string {
  if (/^[\w.:@/+,-]+$/.test(text)) return text
  if (plain(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${Array.from(text, escaped).join('')}'`
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') return `\\${character}`
  if (plain(character) === character) return character
  // In octal, of which shells read three digits and no more.
  return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
