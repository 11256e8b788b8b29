import { parseArgs } from 'node:util'

export const usage = `Usage: npm start -- [options]

Runs an emulator of the service and a receiver with its dashboard, and plays a scenario between them over real HTTP on
127.0.0.1. They keep running afterwards: upload media items on the emulator's page, watch the receiver handle their
events, and replay the one that failed on the dashboard.

Options:
  --port <n>           port of the receiver (default: a free one)
  --emulator-port <n>  port of the emulator and its page (default: a free one)
  --inbox <name>       where the receiver keeps events until they are handled: memory, sqlite or postgres (default:
                       memory)
  --inbox-file <path>  the file of the sqlite inbox (default: a temporary one)
  --inbox-url <url>    the database of the postgres inbox, which gets a schema media_webhooks_demo
  --exit               exit after the summary, with status 0 if every event was handled exactly once and every bad
                       delivery was rejected, otherwise 1
  --help               print this

Environment:
  WEBHOOK_TOKEN  the secret in the webhook's URL (default: a random one for each run)
  NO_COLOR       no colours`

/** The parsed arguments of `npm start`. */
export interface Arguments {
  /** 0 chooses a free port. */
  readonly port: number
  /** 0 chooses a free port. */
  readonly emulatorPort: number
  readonly inbox: 'memory' | 'sqlite' | 'postgres'
  /** `undefined` for a temporary file. */
  readonly inboxFile: string | undefined
  readonly inboxUrl: string | undefined
  readonly exit: boolean
  readonly help: boolean
}

/** @throws Error with a message for the user if an argument is unknown or invalid */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '0' },
      'emulator-port': { type: 'string', default: '0' },
      inbox: { type: 'string', default: 'memory' },
      'inbox-file': { type: 'string' },
      'inbox-url': { type: 'string' },
      exit: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const {
    port,
    'emulator-port': emulatorPort,
    inbox,
    'inbox-file': inboxFile,
    'inbox-url': inboxUrl,
    ...flags
  } = values
  const ports = { port: readPort('port', port), emulatorPort: readPort('emulator-port', emulatorPort) }
  if (inbox !== 'memory' && inbox !== 'sqlite' && inbox !== 'postgres')
    throw new Error(`--inbox takes memory, sqlite or postgres, not '${inbox}'`)
  if (inboxFile !== undefined && inbox !== 'sqlite') throw new Error('--inbox-file goes with --inbox sqlite')
  if ((inboxUrl !== undefined) !== (inbox === 'postgres'))
    throw new Error('--inbox postgres and --inbox-url postgres://… go together')
  return { ...flags, ...ports, inbox, inboxFile, inboxUrl }
}

function readPort(flag: string, value: string): number {
  if (/^\d+$/.test(value) && Number(value) <= 65_535) return Number(value)
  throw new Error(`--${flag} takes a number from 0 to 65535, not '${value}'`)
}
