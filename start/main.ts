import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { flatBody } from '../src/emulator/payload.ts'
import { createReceiver, type Inbox, type Logger, urlToken } from '../src/index.ts'
import { type Arguments, readArguments, usage } from './arguments.ts'
import { createHandlers } from './handlers.ts'
import { emptyLedger, problems, summary } from './ledger.ts'
import { createPrinter } from './print.ts'
import { freshPayload, play } from './scenario.ts'
import { startServer } from './server.ts'
import { summaryText } from './summary.ts'
import { paintIf } from './text.ts'

const { WEBHOOK_TOKEN: secret = randomBytes(24).toString('base64url'), NO_COLOR } = process.env

/** The printed lines already tell what the other levels would. */
const logger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error: (details, message) => console.error(message, details),
}

const options = orUsage(() => readArguments(process.argv.slice(2)))
if (options.help) console.log(usage)
else await main(options).catch(fail)

async function main({ port, exit }: Arguments): Promise<void> {
  // With --exit only the verdict makes it a success, not an interruption before it.
  process.exitCode = exit ? 1 : 0
  const paint = paintIf(process.stdout.isTTY && !NO_COLOR)
  const print = createPrinter(console.log, paint)
  const ledger = emptyLedger()
  const { handlers, others } = createHandlers((event, work, durationMs) => {
    ledger.handled.push(event.payload)
    print.finished(event, work, durationMs)
  })
  const receiver = createReceiver({ verify: orUsage(() => urlToken({ secret })), handlers, hooks: print, logger })
  receiver.onAny(others, { name: 'others' })

  const server = await startServer(receiver, port, print.refusedInFront)
  const close = async () => {
    await receiver.close()
    await server.close()
  }
  closeOnSignal(close)

  const webhook = withToken(server.url, secret)
  console.log(`Listening on ${server.url}\n`)
  print.columnNames()
  await play({
    webhook,
    forgedWebhook: withToken(server.url, randomBytes(24).toString('base64url')),
    ledger,
    heading: print.heading,
    refuseNext: server.refuseNext,
    settled: () => settled(receiver.inbox),
  })
  const wrong = problems(ledger)
  console.log(`\n${summaryText(summary(ledger), wrong, paint)}`)
  if (exit) {
    await close()
    process.exitCode = wrong.length === 0 ? 0 : 1
  } else {
    console.log(`\nStill listening (Ctrl-C ends it). Try:\n\n${curlLine(webhook)}\n`)
  }
}

function withToken(url: URL, token: string): string {
  const webhook = new URL(url)
  webhook.searchParams.set('token', token)
  return webhook.href
}

/** Resolves when the inbox has nothing to do, or after 5 s: what is missing then shows in the verdict. */
async function settled(inbox: Inbox): Promise<void> {
  const deadline = performance.now() + 5_000
  while (performance.now() < deadline) {
    const { waiting, running, retrying } = await inbox.stats()
    if (waiting + running + retrying === 0) return
    await pause(5)
  }
}

// Neither a URL's query nor the payload holds a single quote, so the line can be pasted into a shell.
function curlLine(webhook: string): string {
  return `curl -i '${webhook}' -H 'Content-Type: application/json' -d '${flatBody(freshPayload())}'`
}

function closeOnSignal(close: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      close().then(() => process.exit())
    })
  }
}

function fail(error: NodeJS.ErrnoException): void {
  // A port that is taken is no fault of the program: its stack would tell the user nothing.
  console.error(error.syscall === 'listen' ? error.message : error)
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
