import { once } from 'node:events'
import { createServer } from 'node:http'
import { verifierFor } from '../../emulator/sending/signing.ts'
import { unverified } from '../../index.ts'
import { defineCommand } from '../shared/command.ts'
import { port } from '../shared/flags.ts'
import { hasTokenInPath, readScheme, schemeChoice, schemeFlags, secretOf } from '../shared/schemes.ts'
import { interrupted, listenOn, servingExitCodes } from '../shared/serving.ts'
import { advise } from './listen/advise.ts'
import { describe, printDelivery } from './listen/print.ts'
import { createListener, type ReportedDelivery } from './listen/received.ts'

const standardPort = 4020

export const listen = defineCommand({
  name: 'listen',
  summary: 'receives deliveries, prints their events, and finds the verifier for their sender',
  details:
    'It accepts deliveries at any path, and from anyone unless --verify is given. With --secret it finds the verifier\n' +
    'that accepts them, and prints the line of code to paste. Credentials are masked.',
  flags: {
    port: port(standardPort),
    verify: schemeChoice('reject deliveries that this scheme does not verify'),
    ...schemeFlags,
  },
  json: 'print a line with the URL, then one JSON object per delivery: outcome, status, headers, event, advice, lines',
  exitCodes: servingExitCodes,
  serves: true,
  examples: ['listen', 'listen --port 0 --secret s3cret'],
  async run({ values, given }, screen) {
    const scheme = readScheme('--verify', values.verify, { values, given }, ['secret'])
    const secret = scheme === undefined ? values.secret : secretOf(scheme)
    let lastAdvice: string | undefined

    const print = async (reported: ReportedDelivery) => {
      // A verified delivery needs no advice.
      const needed = scheme === undefined || reported.report.outcome === 'unauthorized'
      const advice = needed && reported.delivery.body.length > 0 ? await advise(reported.delivery, secret) : undefined
      const described = describe(reported, { secret, tokenInPath: hasTokenInPath(scheme) })
      if (values.json) return screen.json({ ...described, ...(advice && { advice: advice.text, lines: advice.lines }) })
      printDelivery(described, screen)
      const text = advice && [advice.text, ...advice.lines].join('\n').replaceAll('\n', '\n  ')
      if (text !== undefined && text !== lastAdvice) screen.print(screen.paint('bold', text))
      lastAdvice = text ?? lastAdvice
    }

    const { listener, close } = createListener(scheme === undefined ? unverified() : verifierFor(scheme), print)
    const server = createServer(listener)
    const url = await listenOn(server, values.port ?? standardPort)
    if (values.json) screen.json({ url })
    else screen.print(`Listening on ${url}, at any path. Press Ctrl-C to stop.`)
    await interrupted(screen.signal)
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
    await close()
    return 0
  },
})
