import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A TCP proxy, whose connections a test can break, mute and lead to another server. */
export class TcpProxy {
  /** The port of the server that new connections are led to. Open ones stay where they are. */
  target: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isBroken = false
  #isMute = false

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
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
    client.on('data', (data) => server.write(data))
    server.on('data', (data) => this.#isMute || client.write(data))
  }

  /** Loses every answer until the connections are broken. */
  mute(): void {
    this.#isMute = true
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
