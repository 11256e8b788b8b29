import { Hono } from 'hono'
import { WebhookError } from '../../errors.ts'
import { createApi } from './api/app.ts'
import { createControl } from './control/app.ts'
import { answerError, answerNotFound } from './http/answer-error.ts'
import { isolatePage, sameOrigin } from './http/same-origin.ts'
import { listen } from './http/server.ts'
import { createPage } from './page/app.tsx'
import { checkEmulatorOptions } from './service/check-options.ts'
import type { Emulator, EmulatorOptions } from './service/options.ts'
import { createService, type EmulatedService } from './service/service.ts'

/**
 * Starts an emulator of the service on this machine: its API, its sender, and a page to watch both.
 *
 * ```ts
 * await using emulator = await createEmulator({ timeScale: 0.01 })
 * const client = createClient(emulator.credentials, { baseUrl: emulator.url })
 * await client.webhook.create({ url: 'http://127.0.0.1:3000/webhooks/media', encodingFinished: true })
 * emulator.addMedia({ title: 'Holiday.mp4' })
 * await emulator.settled()
 * ```
 * @throws WebhookError `invalid_option` if an option is invalid or the port is taken
 */
export async function createEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  checkEmulatorOptions(options)
  const closing = new AbortController()
  const service = createService(options, closing.signal)
  const server = await listen(options.port ?? 0)
  server.serve(createApp(service, { port: server.port, closing: closing.signal }).fetch)

  const { credentials, outbox, addMedia, behave, onDelivery, repeat, settled } = service
  let closed: Promise<void> | undefined
  const close = () => {
    closing.abort(new WebhookError('closing', 'the emulator is closing'))
    closed ??= Promise.all([outbox.close(), service.studio.close(), server.close()]).then(() => {})
    return closed
  }
  return {
    url: `http://127.0.0.1:${server.port}`,
    credentials,
    addMedia,
    behave,
    sendings: () => outbox.list(),
    onDelivery,
    repeat,
    settled,
    close,
    [Symbol.asyncDispose]: close,
  }
}

function createApp(
  service: EmulatedService,
  { port, closing }: { readonly port: number; readonly closing: AbortSignal },
): Hono {
  const app = new Hono().use(isolatePage).use(sameOrigin(port))
  app.route('/api', createApi(service))
  app.route('/emulator', createControl(service, closing))
  app.route('/', createPage(service))
  app.onError(answerError)
  app.notFound(answerNotFound)
  return app
}
