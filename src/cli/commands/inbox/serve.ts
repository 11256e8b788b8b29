import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Logger } from '../../../internal/logger.ts'
import { interrupted, listenOn } from '../../shared/serving.ts'
import { plain } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import { shownUrl } from './command-line.ts'
import { explained } from './explain.ts'
import { servePort } from './flags.ts'

export const serve: InboxAction = {
  help: ['serve', 'serves a page to inspect and operate the inbox, at a URL with a token, until Ctrl-C'],
  flags: ['port', 'redact'],
  serves: true,
  async run(context) {
    const { inbox, target, values, screen } = context
    // Lazy: the other actions start faster without it.
    const [{ createDashboard }, { tokenRule }] = await Promise.all([
      import('../../../operate/dashboard/dashboard.ts'),
      import('../../../operate/dashboard/access/local-only.ts'),
    ])
    const name = target.kind === 'file' ? target.address : shownUrl(target.address)
    const token = randomUUID()
    const options = { authorize: tokenRule(token), ...(values.redact ? { redact: true as const } : {}) }
    const page = createDashboard({ inbox, name, logger: makeLogger(context) }, options)
    const server = createServer(page.node)
    const url = `${await listenOn(server, values.port ?? servePort)}/?token=${token}`
    if (values.json) screen.json({ url })
    else screen.print(`Dashboard of ${plain(name)}, until Ctrl-C: ${url}`)
    await interrupted(screen.signal)
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
    return 0
  },
}

/** Logs warnings and errors, without the target's password. */
function makeLogger({ target, screen }: ActionContext): Logger {
  const note = (details: object, message: string): void => {
    const reason = explained((details as { err?: unknown }).err, target)
    screen.note(plain(reason instanceof Error ? `${message}: ${reason.message}` : message))
  }
  return { level: 'warn', debug() {}, info() {}, warn: note, error: note }
}
