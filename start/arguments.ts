import { parseArgs } from 'node:util'

export const usage = `Usage: npm start -- [options]

Plays a media service against a receiver, over real HTTP on 127.0.0.1, and keeps listening for deliveries of yours.

Options:
  --port <n>  port to listen on (default: a free one)
  --exit      end after the summary: status 0 if every event was handled exactly once and everything bad was refused,
              otherwise 1
  --help      print this

Environment:
  WEBHOOK_TOKEN  the secret in the webhook's URL (default: a random one for each run)
  NO_COLOR       no colours`

export interface Arguments {
  /** 0 for a free one. */
  readonly port: number
  readonly exit: boolean
  readonly help: boolean
}

/** @throws Error with a message for the user when an argument is unknown or makes no sense. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '0' },
      exit: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (!/^\d+$/.test(values.port) || Number(values.port) > 65_535) {
    throw new Error(`--port takes a number from 0 to 65535, not '${values.port}'`)
  }
  return { ...values, port: Number(values.port) }
}
