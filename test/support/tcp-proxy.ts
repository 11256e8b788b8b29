import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A TCP proxy, whose connections a test can break, mute, delay, slow down and lead to another server. */
export class TcpProxy {
  /** The port of the server that new connections are led to. Open ones stay as they are. */
  target: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isBroken = false
  #isMute = false
  #msPerByte = 0
  #silenced: ReadonlySet<Socket> = new Set()
  #delayed: { text: string; sent: (passOn: () => Promise<void>) => void } | undefined

  private constructor(target: number) {
    this.target = target
    this.#server = createServer((client) => this.#lead(client))
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  #lead(client: Socket): void {
    if (this.#isBroken) return void client.destroy()
    const server = connect(this.target, '127.0.0.1')
    let passedOn = Promise.resolve()
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => {
        this.#sockets.delete(from)
        void passedOn.then(() => to.destroy())
      })
    }
    client.on('data', (data) => {
      const delayed = this.#delayed
      if (delayed === undefined || !data.includes(delayed.text)) return void server.write(data)
      this.#delayed = undefined
      passedOn = new Promise((resolve) => {
        delayed.sent(async () => {
          server.write(data)
          await once(server, 'data')
          resolve()
        })
      })
    })
    server.on('data', (data) => {
      if (this.#isMute || this.#silenced.has(server)) return
      client.write(data)
      if (this.#msPerByte === 0) return
      server.pause()
      setTimeout(() => server.resume(), data.length * this.#msPerByte)
    })
  }

  /** Lets answers through at this speed, on each connection. */
  slowDown(bytesPerSecond: number): void {
    this.#msPerByte = 1_000 / bytesPerSecond
  }

  /** Loses every answer until the connections are broken. */
  mute(): void {
    this.#isMute = true
  }

  /** Loses every answer on the connections that are open now. Nothing tells their clients. */
  silence(): void {
    this.#silenced = new Set(this.#sockets)
  }

  /**
   * Delays the next message that contains a text. It arrives even if its client disconnects meanwhile.
   * @returns once the message was sent, a function that passes it on and waits for the answer
   */
  delay(text: string): Promise<() => Promise<void>> {
    return new Promise((sent) => {
      this.#delayed = { text, sent }
    })
  }

  /** Breaks every connection, and accepts none for `ms`. */
  async breakFor(ms: number): Promise<void> {
    this.#isBroken = true
    for (const socket of this.#sockets) socket.destroy()
    this.#isMute = false
    await sleep(ms)
    this.#isBroken = false
  }

  close(): void {
    this.#isBroken = true
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}
