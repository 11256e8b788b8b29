import { once } from 'node:events'
import { createServer } from 'node:http'
import { type SigningOptions, verifierFor } from '../../emulator/sending/signing.ts'
import { unverified } from '../../index.ts'
import { defineCommand } from '../shared/command.ts'
import { port, text } from '../shared/flags.ts'
import { hasTokenInPath, readScheme, schemeChoice, schemeFlags, secretOf } from '../shared/schemes.ts'
import type { Screen } from '../shared/screen.ts'
import { secretUrl } from '../shared/secret-url.ts'
import { interrupted, listenOn, servingExitCodes } from '../shared/serving.ts'
import { shellQuoted } from '../shared/text.ts'
import { advise } from './listen/advise.ts'
import { checkNotItself, createForwarder, type Forwarder, makeFolder, printForwarded } from './listen/forwarder.ts'
import { describe, printDelivery } from './listen/print.ts'
import { createListener, type ReportedDelivery } from './listen/received.ts'

const standardPort = 4020

export const listen = defineCommand({
  name: 'listen',
  summary: 'receives deliveries, prints their events, finds the verifier for their sender, and forwards them',
  details:
    'It accepts deliveries at any path, and from anyone unless --verify is given. With --secret it finds the verifier\n' +
    'that accepts them, and prints the line of code to paste. Credentials are masked. The sender gets the answer of this\n' +
    'command, whatever --forward-to leads to. The files that it keeps contain credentials, and only you can read them.',
  flags: {
    port: port(standardPort),
    verify: schemeChoice('reject deliveries that this scheme does not verify'),
    forwardTo: secretUrl('forward each delivery that is answered 200 to this URL, and keep it'),
    save: text('<folder>', 'keep each delivery that is answered 200 there (--forward-to: in a new temporary folder)'),
    ...schemeFlags,
  },
  json: 'print a line with the URL, then one JSON object per delivery: outcome, status, headers, event, advice, lines, file, forwarded',
  exitCodes: servingExitCodes,
  serves: true,
  examples: [
    'listen',
    'listen --port 0 --secret s3cret',
    'listen --forward-to http://127.0.0.1:3000/webhooks/media --save deliveries',
  ],
  async run({ values, given }, screen) {
    const scheme = readScheme('--verify', values.verify, { values, given }, ['secret'])
    const secret = scheme === undefined ? values.secret : secretOf(scheme)
    const { port = standardPort, forwardTo: to, save, json } = values
    if (to !== undefined) checkNotItself(to, port)
    const folder = to === undefined && save === undefined ? undefined : await makeFolder(save)
    const forward = folder === undefined ? undefined : createForwarder({ to, folder, secret }, screen)
    const print = deliveryPrinter({ scheme, secret, forward, to, json }, screen)

    const unfinished = new Set<Promise<void>>()
    const onDelivery = (reported: ReportedDelivery) => {
      const printed = print(reported).finally(() => unfinished.delete(printed))
      unfinished.add(printed)
    }
    const { listener, close } = createListener(scheme === undefined ? unverified() : verifierFor(scheme), onDelivery)
    const server = createServer(listener)
    const url = await listenOn(server, port)
    if (json) screen.json({ url, ...(folder !== undefined && { folder }) })
    else {
      screen.print(`Listening on ${url}, at any path. Press Ctrl-C to stop.`)
      if (folder !== undefined) screen.print(`Deliveries that are answered 200 are kept in ${shellQuoted(folder)}`)
    }
    await interrupted(screen.signal)
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
    await close()
    await Promise.all(unfinished)
    return 0
  },
})

interface PrintOptions {
  /** The scheme that deliveries are verified with. */
  readonly scheme: SigningOptions | undefined
  readonly secret: string | undefined
  /** Keeps a delivery, and forwards it to the URL. */
  readonly forward: Forwarder | undefined
  readonly to: string | undefined
  readonly json: true | undefined
}

/** Creates the function that forwards a delivery, and prints it with its answer and with advice. */
function deliveryPrinter({ scheme, secret, forward, to, json }: PrintOptions, screen: Screen) {
  let lastAdvice: string | undefined
  return async (reported: ReportedDelivery): Promise<void> => {
    const { delivery, report } = reported
    const described = describe(reported, { secret, tokenInPath: hasTokenInPath(scheme) })
    // A verified delivery needs no advice.
    const needed = scheme === undefined || report.outcome === 'unauthorized'
    const advice = needed && delivery.body.length > 0 ? await advise(delivery, secret) : undefined
    const sent = report.status === 200 ? await forward?.(delivery) : undefined
    if (json) return screen.json({ ...described, ...(advice && { advice: advice.text, lines: advice.lines }), ...sent })
    printDelivery(described, screen)
    if (sent !== undefined) printForwarded(sent, to, screen)
    const text = advice && [advice.text, ...advice.lines].join('\n').replaceAll('\n', '\n  ')
    if (text !== undefined && text !== lastAdvice) screen.print(screen.paint('bold', text))
    lastAdvice = text ?? lastAdvice
  }
}
