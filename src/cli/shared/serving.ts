import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts a server on 127.0.0.1, and resolves with its base URL. */
export async function listenOn(server: Server, port: number): Promise<string> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error) => {
    throw explainPort(error, port)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/**
 * Turns the error of a server that cannot listen into one that names the fix, if the port is the cause.
 * @param flag the flag that sets the port
 */
export function explainPort(error: unknown, port: number, flag = '--port'): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    return new Error(`port ${port} is taken: give another one, or ${flag} 0 for a free one`, { cause: error })
  }
  if (code === 'EACCES')
    return new Error(`listening on port ${port} is not permitted: give a port from 1024 on`, { cause: error })
  return error
}

/** Resolves when the user interrupts the program. */
export async function interrupted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The exit codes of a command that runs until it is interrupted. */
export const servingExitCodes = { 0: 'ended by Ctrl-C or SIGTERM', 1: 'could not listen on the port', 130: undefined }
