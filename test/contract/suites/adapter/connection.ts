import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly status: number
  /** Headers by lower-case name. Duplicates are joined with `, `. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** Headers in sending order. Names may repeat. */
export type Fields = readonly (readonly [name: string, value: string])[]

/** A connection that sends raw bytes, as no HTTP client does: heads without bodies, wrong lengths, bodies in pieces. */
export class Connection {
  /** Resolves once the connection has ended, for any reason. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #isClosed = false
  #onChange = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    // A broken connection also closes, which `closed` reports.
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#onChange()
    })
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true
        this.#onChange()
        resolve()
      })
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  send(data: string | Uint8Array): void {
    if (!this.#isClosed) this.#socket.write(data)
  }

  /** Reads the next answer. Rejects if the connection ends without one. */
  async answer(method = 'POST'): Promise<Answer> {
    for (;;) {
      const answer = this.#readAnswer(method)
      if (answer !== undefined) return answer
      if (this.#isClosed) throw new Error('the connection ended without an answer')
      await new Promise<void>((resolve) => {
        this.#onChange = resolve
      })
    }
  }

  #readAnswer(method: string): Answer | undefined {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd === -1) return undefined
    const [statusLine = '', ...lines] = this.#received.subarray(0, headEnd).toString('latin1').split('\r\n')
    const status = Number(statusLine.split(' ')[1])
    const headers = readFields(lines)
    const hasBody = method !== 'HEAD' && status >= 200
    const end = headEnd + 4 + (hasBody ? Number(headers.get('content-length') ?? 0) : 0)
    if (this.#received.byteLength < end) return undefined
    const body = this.#received.subarray(headEnd + 4, end).toString()
    this.#received = this.#received.subarray(end)
    return { status, headers, body }
  }

  /** Disconnects at once, like a sender that crashes. */
  destroy(): void {
    this.#socket.destroy()
  }
}

function readFields(lines: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = fields.get(name)
    fields.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return fields
}

export async function connectTo(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return new Connection(socket)
}

export function requestHead(method: string, url: string, fields: Fields): string {
  const { host, pathname, search } = new URL(url)
  const lines = [['Host', host] as const, ...fields].map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`
}

export function chunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

export const lastChunk = '0\r\n\r\n'
