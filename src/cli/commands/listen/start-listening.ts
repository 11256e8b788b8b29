import { once } from 'node:events'
import { createServer } from 'node:http'
import { unverified } from '../../../index.ts'
import { type SigningOptions, verifierFor } from '../../../service/emulator/sending/signing.ts'
import { hasTokenInPath, lineFor } from '../../shared/schemes.ts'
import type { Screen } from '../../shared/screen.ts'
import { listenOn } from '../../shared/serving.ts'
import { advise } from './advise.ts'
import { checkNotItself, createForwarder, type Forwarder, makeFolder, printForwarded } from './forwarder.ts'
import { describe, printDelivery, printLesson } from './print.ts'
import { createListener, type ReportedDelivery } from './received.ts'
import { createSenderFile, createTeacher } from './teach/teacher.ts'

/** Default port of `listen`, and of `dev` with `--base-url`. */
export const standardPort = 4020

interface ListeningOptions {
  readonly port: number
  /** Without one, all deliveries are accepted. */
  readonly scheme?: SigningOptions | undefined
  /** Never printed. The advice tries it. */
  readonly secret?: string | undefined
  readonly to: string | undefined
  /** Folder for deliveries. Default: a temporary one if they are forwarded, otherwise none. */
  readonly save: string | undefined
  readonly json: true | undefined
  /** Prints which verifier fits, unless deliveries are verified, and a sender for those of another service. */
  readonly advises: boolean
  /** New file for that sender. Without one, it is printed. */
  readonly write?: string | undefined
}

interface Listening {
  readonly url: string
  readonly folder: string | undefined
  /** Cuts open connections, then resolves once every delivery is printed. */
  close(): Promise<void>
}

/**
 * @throws UsageError if it would forward to itself
 * @throws Error if it can't create the folder or listen on the port, or if there is a file `write`
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
  readonly forward: Forwarder | undefined
}

/** Forwards a delivery, then prints it with the answer, the advice and what it teaches. */
function deliveryPrinter({ scheme, secret, forward, to, json, advises, write }: PrintOptions, screen: Screen) {
  const teach = createTeacher()
  const writeSender = write === undefined ? undefined : createSenderFile(write)
  let lastAdvice: string | undefined
  return async (reported: ReportedDelivery): Promise<void> => {
    const { delivery, report, otherPayload } = reported
    const needed = advises && (scheme === undefined || report.outcome === 'unauthorized')
    const advice = needed && delivery.body.length > 0 ? await advise(delivery, secret) : undefined
    const verifier = scheme === undefined ? advice?.proved : lineFor(scheme)
    const teaches = advises && report.status === 200 && otherPayload !== undefined
    const lesson = teaches ? teach(otherPayload, delivery, verifier) : undefined
    const written = lesson?.isNew ? await writeSender?.(lesson.code) : undefined
    const described = describe(reported, { secret, tokenInPath: hasTokenInPath(scheme) }, lesson)
    const sent = report.status === 200 ? await forward?.(delivery) : undefined
    if (json) {
      const taught = lesson && { fields: lesson.fields, sender: lesson.code, ...(written !== undefined && { written }) }
      return screen.json({
        ...described,
        ...(advice && { advice: advice.text, lines: advice.lines }),
        ...taught,
        ...sent,
      })
    }
    printDelivery(described, screen)
    if (sent !== undefined) printForwarded(sent, to, screen)
    if (lesson !== undefined) printLesson(lesson, written, screen)
    const text = advice && [advice.text, ...advice.lines].join('\n').replaceAll('\n', '\n  ')
    if (text !== undefined && text !== lastAdvice) screen.print(screen.paint('bold', text))
    lastAdvice = text ?? lastAdvice
  }
}
