import { isUtf8 } from 'node:buffer'
import { readFile, writeFile } from 'node:fs/promises'

/** A delivery as it arrived. */
export interface KeptDelivery {
  /** The path and the query. */
  readonly url: string
  /** The header fields in their original order. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** Writes a delivery to a new file that only its user can read: it can contain credentials. The format is HTTP's. */
export async function writeDelivery(path: string, { url, fields, body }: KeptDelivery): Promise<void> {
  const head = [`POST ${url} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`), '', '']
  await writeFile(path, Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body]), { flag: 'wx', mode: 0o600 })
}

// Editors can turn the ends of the lines into line feeds.
const headPattern = /^POST (\S+) HTTP\/1\.[01]\r?\n((?:[^\s:]+:[^\r\n]*\r?\n)*)\r?\n/

/** @throws Error that names the file, if it cannot be read or is not a delivery */
export async function readDelivery(path: string): Promise<KeptDelivery> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.code ?? error.message}`, { cause: error })
  })
  const [head, url, fields] = headPattern.exec(bytes.toString('latin1')) ?? []
  const body = bytes.subarray(head?.length)
  if (url === undefined || fields === undefined || !isUtf8(body)) {
    throw new Error(`${path} is not a delivery that listen has kept`)
  }
  return { url, fields: fields.split(/\r?\n/).slice(0, -1).map(fieldOf), body }
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}
