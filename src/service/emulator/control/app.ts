import { type Context, type Handler, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import * as z from 'zod'
import { maxWaitMs } from '../../../internal/timers.ts'
import { readJson, readOptionalJson } from '../http/read-body.ts'
import { type Behaviour, type Sending, sendingStates } from '../sending/sending.ts'
import type { EmulatedService } from '../service/service.ts'
import { digits, oneOf, readInput, text } from '../shared/input.ts'
import { changeStream } from './events.ts'

const page = {
  offset: digits(0, Number.MAX_SAFE_INTEGER).default(0),
  limit: digits(1, 100).default(25),
}

const mediaQuery = z.strictObject(page)

const sendingsQuery = z.strictObject({
  webhook_id: text.optional(),
  media_id: text.optional(),
  state: oneOf(sendingStates).optional(),
  ...page,
})

type SendingFilter = Omit<z.output<typeof sendingsQuery>, keyof typeof page>

const settledQuery = z.strictObject({ timeout_ms: digits(1, maxWaitMs).optional() })

/**
 * The emulator's own HTTP interface: {@link Emulator} for other languages, the command line and the page. Needs no
 * credentials.
 * @param closing ends the event streams when it aborts
 */
export function createControl(service: EmulatedService, closing: AbortSignal): Hono {
  const app = new Hono()

  app.get('/media', (context) => {
    const { offset, limit } = readInput('query', mediaQuery, context.req.query())
    const media = service.studio.list()
    return context.json({ media: media.slice(offset, offset + limit), total: media.length })
  })
  app.post('/media', async (context) => {
    return context.json({ media: service.addMedia((await readOptionalJson(context.req)) as object) }, 201)
  })
  app.all('/media', only('GET', 'HEAD', 'POST'))

  app.get('/media/:id', (context) => context.json({ media: findOr404(service.studio, 'media', context) }))
  app.all('/media/:id', only('GET', 'HEAD'))

  app.get('/sendings', (context) => {
    const { offset, limit, ...filter } = readInput('query', sendingsQuery, context.req.query())
    const sendings = service.outbox.list().filter((sending) => matches(sending, filter))
    return context.json({ sendings: sendings.slice(offset, offset + limit), total: sendings.length })
  })
  app.all('/sendings', only('GET', 'HEAD'))

  app.get('/sendings/:id', (context) => context.json({ sending: findOr404(service.outbox, 'sending', context) }))
  app.all('/sendings/:id', only('GET', 'HEAD'))

  app.post('/sendings/:id/repeat', async (context) => {
    const { id } = findOr404(service.outbox, 'sending', context)
    const behaviour = (await readOptionalJson(context.req)) as Behaviour | undefined
    return context.json({ sending: service.repeat(id, behaviour) }, 201)
  })
  app.all('/sendings/:id/repeat', only('POST'))

  app.get('/webhooks/:id/behaviour', (context) => {
    const { id } = findOr404(service.workspace.webhooks, 'webhook', context)
    return context.json({ behaviour: service.behaviourOf(id) })
  })
  app.put('/webhooks/:id/behaviour', async (context) => {
    const { id } = findOr404(service.workspace.webhooks, 'webhook', context)
    service.behave(id, (await readJson(context.req)) as Behaviour)
    return context.json({ behaviour: service.behaviourOf(id) })
  })
  app.all('/webhooks/:id/behaviour', only('GET', 'HEAD', 'PUT'))

  app.get('/settled', async (context) => {
    const { timeout_ms } = readInput('query', settledQuery, context.req.query())
    await service.settled(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms })
    return context.json({ settled: true })
  })
  app.all('/settled', only('GET', 'HEAD'))

  app.get('/events', changeStream(service.changes, closing))
  app.all('/events', only('GET', 'HEAD'))
  return app
}

function matches(sending: Sending, { webhook_id, media_id, state }: SendingFilter): boolean {
  return (
    (webhook_id === undefined || sending.webhookId === webhook_id) &&
    (media_id === undefined || sending.payload.media_id === media_id) &&
    (state === undefined || sending.state === state)
  )
}

function findOr404<T>(items: { get(id: string): T | undefined }, kind: string, context: Context): T {
  const item = items.get(context.req.param('id') ?? '')
  if (item === undefined) throw new HTTPException(404, { message: `there is no ${kind} with this id` })
  return item
}

function only(...methods: readonly string[]): Handler {
  const allow = methods.join(', ')
  return (context) => {
    context.header('Allow', allow)
    throw new HTTPException(405, { message: `${context.req.path} takes ${allow}` })
  }
}
