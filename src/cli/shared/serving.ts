import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on 127.0.0.1. Resolves with the base URL. */
export async function listenOn(server: Server, port: number): Promise<string> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error) => {
    throw explainPort(error, port)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Names the fix if the port is why a server can't listen. */
export function explainPort(error: unknown, port: number, flag = '--port'): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    return new Error(`port ${port} is taken: pass another ${flag}, or ${flag} 0 for a free one`, { cause: error })
  }
  if (code === 'EACCES')
    return new Error(`not allowed to listen on port ${port}: pass a ${flag} of 1024 or above`, { cause: error })
  return error
}

/** Resolves on Ctrl-C. */
export async function interrupted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

export const servingExitCodes = { 0: 'ended by Ctrl-C or SIGTERM', 1: 'could not listen on the port', 130: undefined }
