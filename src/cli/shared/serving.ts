import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on 127.0.0.1, and resolves with the base URL. */
export async function listenOn(server: Server, port: number): Promise<string> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error) => {
    throw explainPort(error, port)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/**
 * The error of a server that could not listen, with the fix where the port is the cause.
 * @param flag which gives the port
 */
export function explainPort(error: unknown, port: number, flag = '--port'): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    return new Error(`port ${port} is taken: give another one, or ${flag} 0 for a free one`, { cause: error })
  }
  if (code === 'EACCES')
    return new Error(`port ${port} is not yours to listen on: give one from 1024 on`, { cause: error })
  return error
}

/** Resolves when the user wants the command to end. */
export async function interrupted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The exit codes of a command that goes on until it is interrupted. */
export const servingExitCodes = { 0: 'it was ended, by Ctrl-C or SIGTERM', 1: 'it could not listen', 130: undefined }
