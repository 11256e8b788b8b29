import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { UsageError } from './flags.ts'
import type { ProgramContext } from './screen.ts'

/** Maximum line length. No URL is longer. */
const maxLineLength = 65_536

/** Reads the first line of standard input, trimmed. */
export async function readLine({ stdin, stderr, signal }: ProgramContext): Promise<string> {
  if (stdin.isTTY) stderr.write('Paste the value, and press Enter.\n')
  let text = ''
  for await (const chunk of addAbortSignal(signal, stdin).setEncoding('utf8')) {
    text += chunk
    if (text.includes('\n') || text.length > maxLineLength) break
  }
  return text.split('\n', 1)[0]?.trim() ?? ''
}

/** Maximum file size (bytes). No service sends bodies that large. */
const maxFile = 2 ** 20

/** `-` reads all of standard input. @throws UsageError with a message that follows the flag's name */
export async function readText(path: string, { stdin, stderr, signal }: ProgramContext): Promise<string> {
  if (path === '-' && stdin.isTTY) stderr.write('Paste the text, and press Ctrl-D.\n')
  const reading = path === '-' ? buffer(addAbortSignal(signal, stdin)) : readFile(path)
  const bytes = await reading.catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`cannot read ${path}: ${error.code ?? error.message}`)
  })
  if (bytes.length > maxFile) throw new UsageError(`takes a file of at most ${maxFile} bytes`)
  if (!isUtf8(bytes)) throw new UsageError('takes a file in UTF-8')
  return bytes.toString()
}
