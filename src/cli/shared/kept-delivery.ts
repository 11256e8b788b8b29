import { isUtf8 } from 'node:buffer'
import { readFile, writeFile } from 'node:fs/promises'

export interface KeptDelivery {
  /** Path and query. */
  readonly url: string
  /** In their original order. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** Writes a delivery as an HTTP message to a new file. Only its owner may read it: it can contain credentials. */
export async function writeDelivery(path: string, { url, fields, body }: KeptDelivery): Promise<void> {
  const head = [`POST ${url} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`), '', '']
  await writeFile(path, Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body]), { flag: 'wx', mode: 0o600 })
}

// Editors may have turned CRLF into LF.
const headPattern = /^POST (\S+) HTTP\/1\.[01]\r?\n((?:[^\s:]+:[^\r\n]*\r?\n)*)\r?\n/

/** @throws Error if the file can't be read or is no kept delivery */
export async function readDelivery(path: string): Promise<KeptDelivery> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.code ?? error.message}`, { cause: error })
  })
  const [head, url, fields] = headPattern.exec(bytes.toString('latin1')) ?? []
  const body = bytes.subarray(head?.length)
  if (url === undefined || fields === undefined || !isUtf8(body)) {
    throw new Error(`${path} is not a delivery saved by listen or dev`)
  }
  return { url, fields: fields.split(/\r?\n/).slice(0, -1).map(parseField), body }
}

function parseField(line: string): [name: string, value: string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}
