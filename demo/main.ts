import { randomBytes } from 'node:crypto'
import { explainPort } from '../src/cli/shared/serving.ts'
import { paintIf } from '../src/cli/shared/text.ts'
import { createClient, registerWebhook } from '../src/client/index.ts'
import { createEmulator } from '../src/emulator/index.ts'
import { createReceiver, type Logger, urlToken } from '../src/index.ts'
import { type Arguments, readArguments, usage } from './arguments.ts'
import { createHandlers } from './handlers.ts'
import { inboxEmpty, openStorage } from './inbox.ts'
import { emptyLedger, problems, summary } from './ledger.ts'
import { createPrinter, summaryText } from './print.ts'
import { play } from './scenario.ts'
import { startServer } from './server.ts'

const { WEBHOOK_TOKEN: secret = randomBytes(24).toString('base64url'), NO_COLOR } = process.env

/** The printed lines already tell what the other levels would. */
const logger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error: (details, message) => console.error(message, details),
}

/** Twenty times as fast as the service: fast enough to wait for, slow enough to watch. */
const timeScale = 0.05

const interrupted = new AbortController()
const options = orUsage(() => readArguments(process.argv.slice(2)))
if (options.help) console.log(usage)
else await main(options).catch(fail)

async function main(options: Arguments): Promise<void> {
  const { port, emulatorPort, exit } = options
  // With --exit only the verdict makes it a success, not an interruption before it.
  process.exitCode = exit ? 1 : 0
  const paint = paintIf(process.stdout.isTTY && !NO_COLOR)
  const print = createPrinter(console.log, paint)
  const ledger = emptyLedger()
  const { handlers, others } = createHandlers((event, work, durationMs) => {
    ledger.handled.push(event.payload)
    print.finished(event, work, durationMs)
  })
  const verify = orUsage(() => urlToken({ secret }))
  const { inbox, place, remove } = await openStorage(options)
  const receiver = createReceiver({ verify, inbox, handlers, hooks: print, logger })
  receiver.onAny(others, { name: 'others' })

  const server = await startServer(receiver, port, print.refusedInFront)
  const emulator = await createEmulator({ port: emulatorPort, timeScale }).catch((error: Error) => {
    throw error.cause === undefined ? error : explainPort(error.cause, emulatorPort, '--emulator-port')
  })
  const close = async () => {
    await emulator.close()
    const { unfinished } = await receiver.close()
    await server.close()
    if (unfinished.length === 0) await remove()
  }
  closeOnSignal(close)
  console.log(`Receiver  ${server.url}\nInbox     ${place}\nEmulator  ${emulator.url}  (its page: open it and watch)\n`)

  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const url = withToken(server.url, secret)
  const { webhook } = await registerWebhook(client, receiver, { url, name: 'npm start' })
  print.columnNames()
  // What an earlier run left in its file is no part of this play.
  await inboxEmpty(inbox)
  ledger.handled.length = 0
  await play({
    emulator,
    client,
    webhook: { id: webhook.id, url },
    forgedUrl: withToken(server.url, randomBytes(24).toString('base64url')),
    ledger,
    heading: print.heading,
    refuseNext: server.refuseNext,
    handled: () => inboxEmpty(inbox),
  })
  ledger.sent.unshift(...emulator.sendings().toReversed())
  const wrong = problems(ledger)
  console.log(`\n${summaryText(summary(ledger), wrong, paint)}`)
  if (exit) {
    await close()
    process.exitCode = wrong.length === 0 ? 0 : 1
  } else {
    console.log(`\nStill running (Ctrl-C ends it). Open ${emulator.url}, or try:\n\n${curlLine(emulator.url)}\n`)
  }
}

function withToken(url: URL, token: string): string {
  const webhook = new URL(url)
  webhook.searchParams.set('token', token)
  return webhook.href
}

function curlLine(emulatorUrl: string): string {
  return `curl '${emulatorUrl}/emulator/media' -H 'Content-Type: application/json' -d '{"title":"Try me.mp4"}'`
}

function closeOnSignal(close: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupted.abort()
      close().then(() => process.exit())
    })
  }
}

function fail(error: Error): void {
  // The scene that was cut off says so, and the process ends when all is closed.
  if (interrupted.signal.aborted) return
  // A port that is taken is no fault of the program: its stack would tell the user nothing.
  const listens = [error, error.cause].some((each) => (each as NodeJS.ErrnoException | undefined)?.syscall === 'listen')
  const isExpected = listens || error.name === 'WebhookError'
  console.error(isExpected ? error.message : error)
  process.exit(1)
}

/** What `make` returns; where it throws, the command makes no sense, and it ends with the reason. */
function orUsage<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}
