/** Maximum number of characters of a message that tell causes apart. */
const longestMessage = 300

/** A quoted part. It ends at a quote before a space, punctuation or the end: a quoted title can have quotes itself. */
const quoted = /(?<!\w)(["'`]).*?\1(?=[\s.,:;!?)\]}]|$)|“[^”]*”|‘[^’]*’|«[^»]*»/gs

/** Replaces what differs from event to event by `#`: numbers, ids and quoted parts. */
export function templateOf(message: string): string {
  return message
    .slice(0, 2 * longestMessage)
    .replace(quoted, '“#”')
    .replace(/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, '#')
    .replace(/\b(?=\w*\d)[\w-]{12,}\b/g, '#')
    .replace(/\b0x[\da-f]+\b|\d+(?:[.,:]\d+)*/gi, '#')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, longestMessage)
}
