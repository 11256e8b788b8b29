/** Maximum length of a template (characters). */
const longestMessage = 300

/** Opening quotes. A straight quote after a word character is an apostrophe or closes. */
const openings = /(?<!\w)["'`]|[“‘«]/g

/** Closing quotes. A straight quote closes only before space, punctuation or the end: titles may contain quotes. */
const endings: Readonly<Record<string, RegExp>> = {
  '"': /"(?=[\s.,:;!?)\]}]|$)/g,
  "'": /'(?=[\s.,:;!?)\]}]|$)/g,
  '`': /`(?=[\s.,:;!?)\]}]|$)/g,
  '“': /”/g,
  '‘': /’/g,
  '«': /»/g,
}

/** Replaces quoted parts in linear time. A single regex would be quadratic in the number of quotes. */
function withoutQuoted(text: string): string {
  const nextEnds = new Map<string, number>()
  const endAfter = (quote: string, from: number): number => {
    const known = nextEnds.get(quote)
    if (known !== undefined && known > from) return known
    const ending = endings[quote] as RegExp
    ending.lastIndex = from + 1
    const end = ending.exec(text)?.index ?? Number.POSITIVE_INFINITY
    nextEnds.set(quote, end)
    return end
  }
  let result = ''
  let copied = 0
  for (const { 0: quote, index } of text.matchAll(openings)) {
    const end = index < copied ? Number.POSITIVE_INFINITY : endAfter(quote, index)
    if (end === Number.POSITIVE_INFINITY) continue
    result += `${text.slice(copied, index)}“#”`
    copied = end + 1
  }
  return result + text.slice(copied)
}

/** Text before an HTTP status or an error code: `answered 404`, `(503)`, `code P2002`. */
const beforeStatus =
  /(?:\b(?:status|answered|responded|replied|returned|got|http(?:\/[\d.]+)?)[^\w#]{1,3}(?:code|with|status|http)?[^\w#]{0,3}|\berror |\()$/i
const beforeCode = /\b(?:code|sqlstate|errno)[^\w#]{1,3}[a-z]?$/i
const reasonPhrase =
  /^ (?:Bad|Unauthorized|Forbidden|Not|Method|Request|Conflict|Gone|Too|Internal|Service|Gateway|Unprocessable|Payload) ?/

/** True for a status or error code, which names the cause. Other numbers name the event. */
function isCode(digits: string, before: string, after: string): boolean {
  if (beforeCode.test(before)) return /^\d{1,5}$/.test(digits)
  if (!/^[45]\d\d$/.test(digits) || /^[\w-]/.test(after)) return false
  return reasonPhrase.test(after) || (beforeStatus.test(before) && (!before.endsWith('(') || after.startsWith(')')))
}

/** Replaces numbers, ids and quoted parts by `#`. Keeps statuses and error codes. */
export function makeTemplate(message: string): string {
  return withoutQuoted(message.slice(0, 2 * longestMessage))
    .replace(/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, '#')
    .replace(/\b(?=\w*\d)[\w-]{12,}\b/g, '#')
    .replace(/\b0x[\da-f]+\b|\d+(?:[.,:]\d+)*/gi, (digits, at: number, text: string) =>
      isCode(digits, text.slice(Math.max(0, at - 30), at), text.slice(at + digits.length, at + digits.length + 20))
        ? digits
        : '#',
    )
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, longestMessage)
}
