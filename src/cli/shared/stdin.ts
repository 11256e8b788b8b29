import { addAbortSignal } from 'node:stream'
import type { ProgramContext } from './screen.ts'

/** Maximum number of characters that are read. A longer line is not a URL. */
const longest = 65_536

/** Reads the first line of standard input, without the white space around it. */
export async function readLine({ stdin, stderr, signal }: ProgramContext): Promise<string> {
  if (stdin.isTTY) stderr.write('Paste the value, and press Enter.\n')
  let text = ''
  for await (const chunk of addAbortSignal(signal, stdin).setEncoding('utf8')) {
    text += chunk
    if (text.includes('\n') || text.length > longest) break
  }
  return text.split('\n', 1)[0]?.trim() ?? ''
}
