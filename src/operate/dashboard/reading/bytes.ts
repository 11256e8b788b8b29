import { fatalDecoder } from '../../../internal/utf8.ts'

/** Bytes shown in a hex dump. */
const longestDump = 4_096

/** Decodes bytes as UTF-8, or else dumps them in hex. */
export function showBytes(bytes: Uint8Array): { readonly text: string; readonly isDump: boolean } {
  try {
    return { text: visible(fatalDecoder.decode(bytes)), isDump: false }
  } catch {
    return { text: hexDump(bytes), isDump: true }
  }
}

function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let offset = 0; offset < Math.min(bytes.length, longestDump); offset += 16) {
    const row = [...bytes.subarray(offset, offset + 16)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${offset.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${text}`)
  }
  if (bytes.length > longestDump) lines.push(`… ${bytes.length - longestDump} more bytes`)
  return lines.join('\n')
}

/** Escapes control and bidi characters, except tabs and line feeds. */
export const visible = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it escapes
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
