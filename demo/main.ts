import { randomBytes } from 'node:crypto'
import { closeOnSignals, closeServer } from '../adapters/node.ts'
import { paintIf } from '../src/cli/shared/text.ts'
import { type Logger, urlToken } from '../src/index.ts'
import { createClient, registerWebhook } from '../src/service/client/index.ts'
import { type Arguments, readArguments, usage } from './arguments.ts'
import { createHandlers, unpublished } from './handlers.ts'
import { inboxEmpty, prepareStorage } from './inbox.ts'
import { emptyLedger, problems, summary } from './ledger.ts'
import { createPrinter, summaryText } from './print.ts'
import { play } from './scenario.ts'
import { start } from './start.ts'

const { WEBHOOK_TOKEN: secret = randomBytes(24).toString('base64url'), NO_COLOR } = process.env

/** Logs errors only, and no failed handlers: the printed lines cover them and the other levels. */
const logger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error: (details, message) => 'handler' in details || console.error(message, details),
}

const interrupted = new AbortController()
const options = orUsage(() => readArguments(process.argv.slice(2)))
ignoreClosedOutput(options)
if (options.help) console.log(usage)
else await main(options).catch(fail)

async function main(options: Arguments): Promise<void> {
  const { exit } = options
  // With --exit, only the verdict sets status 0. An interruption before it is a failure.
  process.exitCode = exit ? 1 : 0
  const paint = paintIf(process.stdout.isTTY && !NO_COLOR)
  const print = createPrinter(console.log, paint)
  const ledger = emptyLedger()
  const { handlers, others } = createHandlers((event, work, durationMs) => {
    ledger.handled.push(event.payload)
    print.finished(event, work, durationMs)
  })
  const verify = orUsage(() => urlToken({ secret }))
  const storage = await prepareStorage(options)
  const { place, remove } = storage
  const hooks = { delivery: print.delivery, handling: print.handling }
  const receiverOptions = { verify, inbox: storage.inbox, handlers, hooks, logger }
  const { receiver, server, emulator } = await start({ receiverOptions, others, options, print }).catch(
    async (error) => {
      await remove()
      throw error
    },
  )
  const servers = {
    close(closed: () => void) {
      interrupted.abort()
      emulator.close().then(server.close).then(closed, closed)
    },
  }
  closeOnSignals(servers, receiver, { onClosed: remove })
  const pages = `Dashboard  ${server.dashboardUrl}\nEmulator   ${emulator.url}`
  console.log(`Receiver   ${server.url}\nInbox      ${place}\n${pages}\n`)

  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const url = withToken(server.url, secret)
  const {
    data: { webhook },
  } = await registerWebhook(client, receiver, { url, name: 'npm start' })
  print.columnNames()
  // The file may hold events of an earlier run, which do not count in this one.
  await inboxEmpty(receiver.inbox)
  ledger.handled.length = 0
  await play({
    emulator,
    client,
    webhook: { id: webhook.id, url },
    forgedUrl: withToken(server.url, randomBytes(24).toString('base64url')),
    ledger,
    heading: print.heading,
    rejectNext: server.rejectNext,
    handled: () => inboxEmpty(receiver.inbox),
  })
  ledger.sent.unshift(...emulator.sendings().toReversed())
  const wrong = problems(ledger)
  console.log(`\n${summaryText(summary(ledger), wrong, paint)}`)
  if (exit) {
    await closeServer(servers, receiver)
    await remove()
    process.exitCode = wrong.length === 0 ? 0 : 1
  } else {
    print.heading('A handler that fails: its event becomes a dead letter, for you to replay')
    emulator.addMedia({ title: unpublished, qualities: ['360p'] })
    await emulator.settled()
    await inboxEmpty(receiver.inbox)
    console.log(
      `\nStill running (Ctrl-C stops it). The dashboard shows why an event was given up, and replays it:\n\n${pages}\n`,
    )
    console.log(`Upload on the emulator's page, or with:\n\n${curlLine(emulator.url)}\n`)
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

/** When the reader closes our output (`| head`), a run with --exit continues, any other ends. */
function ignoreClosedOutput({ exit }: Arguments): void {
  for (const output of [process.stdout, process.stderr]) {
    output.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') process.exit(1)
      if (!exit) process.emit('SIGINT')
    })
  }
}

function fail(error: Error): void {
  // After Ctrl-C the interrupted scene fails. The process exits once everything is closed.
  if (interrupted.signal.aborted) return
  // An expected error, such as a port in use, is shown without its stack.
  const listens = [error, error.cause].some((each) => (each as NodeJS.ErrnoException | undefined)?.syscall === 'listen')
  const isExpected = listens || error.name === 'WebhookError'
  console.error(isExpected ? error.message : error)
  process.exit(1)
}

/** Returns the result of `make`. If it throws, the command is invalid: prints the reason and the usage, and exits with 2. */
function orUsage<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}
