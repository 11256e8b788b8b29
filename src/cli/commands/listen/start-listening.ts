import { once } from 'node:events'
import { createServer } from 'node:http'
import { type SigningOptions, verifierFor } from '../../../emulator/sending/signing.ts'
import { unverified } from '../../../index.ts'
import { hasTokenInPath } from '../../shared/schemes.ts'
import type { Screen } from '../../shared/screen.ts'
import { listenOn } from '../../shared/serving.ts'
import { advise } from './advise.ts'
import { checkNotItself, createForwarder, type Forwarder, makeFolder, printForwarded } from './forwarder.ts'
import { describe, printDelivery } from './print.ts'
import { createListener, type ReportedDelivery } from './received.ts'

/** The port of `listen` and `dev`. */
export const standardPort = 4020

/** The options of {@link startListening}. */
interface ListeningOptions {
  readonly port: number
  /** The scheme that deliveries are verified with. Without one, all are accepted. */
  readonly scheme?: SigningOptions | undefined
  /** A secret that must not be printed, and that the advice tries. */
  readonly secret?: string | undefined
  /** The URL to forward deliveries to. */
  readonly to: string | undefined
  /** The folder for deliveries. With a URL to forward to, it is a new temporary one if it is left out. */
  readonly save: string | undefined
  readonly json: true | undefined
  /** `true` prints which verifier fits the deliveries, unless they are verified. */
  readonly advises: boolean
}

/** A server that prints, keeps and forwards deliveries. */
interface Listening {
  readonly url: string
  /** The folder that deliveries are kept in. */
  readonly folder: string | undefined
  /** Cuts off open connections, and resolves once every delivery is printed. */
  close(): Promise<void>
}

/**
 * Starts a server that accepts deliveries at any path.
 * @throws UsageError if the URL to forward to is the server itself
 * @throws Error if the folder cannot be made or the port cannot be listened on
 */
export async function startListening(options: ListeningOptions, screen: Screen): Promise<Listening> {
  const { port, scheme, secret, to, save } = options
  if (to !== undefined) checkNotItself(to, port)
  const folder = to === undefined && save === undefined ? undefined : await makeFolder(save)
  const forward = folder === undefined ? undefined : createForwarder({ to, folder, secret }, screen)
  const print = deliveryPrinter({ ...options, forward }, screen)

  const unfinished = new Set<Promise<void>>()
  const onDelivery = (reported: ReportedDelivery) => {
    const printed = print(reported).finally(() => unfinished.delete(printed))
    unfinished.add(printed)
  }
  const { listener, close } = createListener(scheme === undefined ? unverified() : verifierFor(scheme), onDelivery)
  const server = createServer(listener)
  return {
    url: await listenOn(server, port),
    folder,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
      await close()
      await Promise.all(unfinished)
    },
  }
}

interface PrintOptions extends Omit<ListeningOptions, 'port' | 'save'> {
  /** Keeps a delivery, and forwards it to the URL. */
  readonly forward: Forwarder | undefined
}

/** Creates the function that forwards a delivery, and prints it with its answer and with advice. */
function deliveryPrinter({ scheme, secret, forward, to, json, advises }: PrintOptions, screen: Screen) {
  let lastAdvice: string | undefined
  return async (reported: ReportedDelivery): Promise<void> => {
    const { delivery, report } = reported
    const described = describe(reported, { secret, tokenInPath: hasTokenInPath(scheme) })
    // A verified delivery needs no advice.
    const needed = advises && (scheme === undefined || report.outcome === 'unauthorized')
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
