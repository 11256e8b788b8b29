import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type express from 'express'
import type { RequestHandler } from 'express'
import { Hono, type MiddlewareHandler } from 'hono'
import { describe, expect, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { nodeHandler } from '../../adapters/node.ts'
import { postJson } from '../support/post-json.ts'
import { serveWebhook } from '../support/serve.ts'
import { path, versions } from './express-app.ts'
import { bytes, post, signedRequest, watchedReceiver } from './receivers.ts'

// Each test first provokes `body_consumed`, and then follows the advice that was logged, word for word.

const consumed = { status: 500, body: expect.objectContaining({ code: 'body_consumed' }) }
const accepted = { status: 200, body: { status: 'accepted' } }

/** The code in a log line that a pattern finds. */
function codeIn(lines: readonly { message: string }[], pattern: RegExp): string {
  const [code] = pattern.exec(lines.at(-1)?.message ?? '') ?? []
  expect(code, `${pattern} in: ${lines.at(-1)?.message}`).toBeDefined()
  return code as string
}

/** Evaluates code of an advice. */
const evaluate = <Result>(code: string, names: object): Result =>
  new Function(...Object.keys(names), `return ${code}`)(...Object.values(names))

describe.each(versions)('the advice for %s', (_, create) => {
  /** Mounts a receiver, after what `before` adds to the application, and after its parser. */
  async function mounted(before: (app: express.Express) => void, parser: RequestHandler = create.json()) {
    const { receiver, lines, handled } = watchedReceiver(bytes)
    const app = create()
    before(app)
    app.use(parser)
    app.post(path, expressHandler(receiver))
    app.post('/echo', (request, response) => void response.json(request.body))
    return { url: await serveWebhook(app), lines, handled, receiver }
  }

  async function advice() {
    const { url, lines } = await mounted(() => {})
    expect(await post(url, bytes)).toEqual(consumed)
    return lines
  }

  test('is to mount the receiver before the parser', async () => {
    codeIn(await advice(), /mount the receiver before express\.json\(\)/)
    const { receiver } = watchedReceiver(bytes)
    const { url } = await mounted((app) => app.post(path, expressHandler(receiver)))
    expect(await post(url, bytes)).toEqual(accepted)
  })

  test('is to put express.raw on the path before the parser', async () => {
    const code = codeIn(await advice(), /express\.raw\(.+?\)(?= on its path before express\.json\(\))/)
    const raw = evaluate<RequestHandler>(code, { express: create })
    const { url } = await mounted((app) => app.use(path, raw))
    expect(await post(url, bytes)).toEqual(accepted)
  })

  test('is to let express.json keep the bytes, and leaves the other routes their parsed bodies', async () => {
    const code = codeIn(await advice(), /express\.json\(\{.+\}\) \}\)/)
    const { url } = await mounted(() => {}, evaluate(code, { express: create }))
    expect(await post(url, bytes)).toEqual(accepted)
    const echoed = await postJson(new URL('/echo', url), { a: 1 })
    expect(await echoed.json()).toEqual({ a: 1 })
  })

  test('names the option of NestJS, which runs on Express', async () => {
    codeIn(await advice(), /NestFactory\.create\(AppModule, \{ rawBody: true \}\)/)
  })
})

describe('the advice for Hono', () => {
  async function mounted(middleware: MiddlewareHandler) {
    const { receiver, lines } = watchedReceiver(bytes)
    const app = new Hono().use(middleware).post(path, honoHandler(receiver))
    return { url: await serveWebhook(getRequestListener(app.fetch)), lines }
  }

  test('is to read the body through c.req', async () => {
    const { url, lines } = await mounted(async (c, next) => {
      await c.req.raw.text()
      await next()
    })
    expect(await post(url, bytes)).toEqual(consumed)
    const code = codeIn(lines, /await c\.req\.text\(\)/)
    const read = evaluate<(c: object) => Promise<string>>(`async (c) => ${code}`, {})
    const fixed = await mounted(async (c, next) => {
      expect(await read(c)).toContain('encoding.finished')
      await next()
    })
    expect(await post(fixed.url, bytes)).toEqual(accepted)
  })
})

describe('the advice for a web Request', () => {
  test('is to read a copy', async () => {
    const { receiver, lines } = watchedReceiver(bytes)
    const handler = fetchHandler(receiver)
    const signed = async () => {
      const { url, init } = await signedRequest('https://example.com/webhooks/media', bytes)
      return new Request(url, init)
    }
    const request = await signed()
    await request.text()
    expect((await handler(request)).status).toBe(500)
    const code = codeIn(lines, /await request\.clone\(\)\.text\(\)/)
    const another = await signed()
    const read = evaluate<(request: Request) => Promise<string>>(`async (request) => ${code}`, {})
    expect(await read(another)).toContain('encoding.finished')
    expect((await handler(another)).status).toBe(200)
  })
})

describe('the advice for node:http', () => {
  test('is to keep the bytes as request.rawBody', async () => {
    const { receiver, lines } = watchedReceiver(bytes)
    const handler = nodeHandler(receiver)
    const parsing = (keep: boolean) =>
      createServer(async (request, response) => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk)
        if (keep) Object.assign(request, { rawBody: Buffer.concat(chunks) })
        void handler(request, response)
      }).listeners('request')[0] as Parameters<typeof serveWebhook>[0]
    expect(await post(await serveWebhook(parsing(false)), bytes)).toEqual(consumed)
    codeIn(lines, /keep the bytes as request\.rawBody/)
    expect(await post(await serveWebhook(parsing(true)), bytes)).toEqual(accepted)
  })
})
