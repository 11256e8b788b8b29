import { once } from 'node:events'
import { connect } from 'node:net'
import { path, type SignedDelivery } from './deliveries.ts'

/** A kept-alive connection that carries one delivery at a time. */
export interface Connection {
  /** Sends a delivery and calls `answered` with the status; 0 when the server closes the connection. */
  send(request: Buffer, answered: (status: number) => void): void
  close(): void
}

/**
 * Makes the bytes of a whole request. They are made before the clock starts, because the load has to cost less than the
 * server.
 */
export function requestOf({ body, headers }: SignedDelivery): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

export async function openConnection(port: number): Promise<Connection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let received = ''
  let onAnswer: (status: number) => void = () => {}

  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
    if (!isWhole(received)) return
    const status = Number(received.slice(9, 12))
    received = ''
    onAnswer(status)
  })
  socket.on('close', () => onAnswer(0))

  return {
    send(request, answered) {
      onAnswer = answered
      socket.write(request)
    },
    close() {
      onAnswer = () => {}
      socket.destroy()
    },
  }
}

function isWhole(response: string): boolean {
  const bodyStart = response.indexOf('\r\n\r\n') + 4
  if (bodyStart < 4) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(response)
  if (length) return response.length >= bodyStart + Number(length[1])
  return response.endsWith('\r\n0\r\n\r\n') || response.startsWith('HTTP/1.1 204')
}
