import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * The addresses of this machine, other than 127.0.0.1, at which a server that listens on all interfaces accepts
 * connections. Linux answers at every address of 127.0.0.0/8.
 */
const otherAddresses: readonly string[] = [
  ...(process.platform === 'linux' ? ['127.0.0.2'] : []),
  ...Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ address, scopeid }) => address !== '127.0.0.1' && !scopeid)
    .map(({ address }) => address),
]

/** Connects to the server of a URL at every address of this machine. Returns those that accept the connection. */
export async function reachableAt(url: string): Promise<string[]> {
  const port = Number(new URL(url).port)
  if (otherAddresses.length === 0) throw new Error('this machine has no address but 127.0.0.1, so this proves nothing')
  const accepting = await Promise.all(['127.0.0.1', ...otherAddresses].map((address) => accepts(address, port)))
  return accepting.filter((address) => address !== undefined)
}

async function accepts(address: string, port: number): Promise<string | undefined> {
  const socket = connect(port, address)
  try {
    await once(socket, 'connect')
    return address
  } catch {
    return undefined
  } finally {
    socket.destroy()
  }
}
