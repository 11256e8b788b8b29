import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import * as z from 'zod'
import type { EmulatedService } from '../service/service.ts'
import { notAnObject, readInput } from '../shared/input.ts'
import { defaultWebhookName, errorBody, failedCheckStatus } from '../shared/undocumented.ts'
import type { Webhooks } from '../workspace/webhooks.ts'
import { subscriptionFlags, type Webhook } from '../workspace/webhooks.ts'
import { flags, listQuery, notBlank, readBody, readId, readQuery, url } from './request.ts'
import type { Routes } from './routes.ts'
import type { ApiRules } from './rules.ts'

const query = z.object({ ...listQuery(['created_at', 'name', 'url'], 100), ...flags })

export function webhookRoutes(webhooks: Webhooks, check: EmulatedService['check'], rules: ApiRules): Routes {
  const patch = z.object({ name: notBlank(rules.name).optional(), url: url.optional(), ...flags }, notAnObject)
  const input = z
    .object({ name: rules.name.optional(), url, ...flags }, notAnObject)
    .refine((given) => !rules.needsEvent || subscriptionFlags.some((flag) => given[flag]), {
      error: `must select an event: set one of ${subscriptionFlags.join(', ')} to true`,
    })
    .transform((given) => ({ ...given, name: given.name?.trim() ? given.name : defaultWebhookName }))

  const find = (context: Context): Webhook => {
    const webhook = webhooks.get(readId(context, rules))
    if (webhook === undefined) throw notFound()
    return webhook
  }
  const update = async (context: Context) => {
    const id = readId(context, rules)
    const updated = webhooks.update(id, readInput('body', patch, await readBody(context.req)))
    if (updated === undefined) throw notFound()
    return context.json({ status: 'success', message: 'the webhook was updated' })
  }

  return {
    '/webhooks': {
      GET(context) {
        const { items, total } = webhooks.list(readQuery(query, context))
        return context.json({ status: 'success', data: { webhooks: items, total } })
      },
      async POST(context) {
        const webhook = webhooks.create(readInput('body', input, await readBody(context.req)))
        return context.json({ status: 'success', data: { webhook } }, 201)
      },
    },
    '/webhooks/:id': {
      GET(context) {
        return context.json({ status: 'success', data: { webhook: find(context) } })
      },
      PATCH: update,
      // The documentation's FAQ changes the URL with PUT; its endpoint description says PATCH.
      PUT: update,
      DELETE(context) {
        if (!webhooks.delete(readId(context, rules))) throw notFound()
        return context.json({ status: 'success', message: 'the webhook was deleted' })
      },
    },
    '/webhooks/check/:id': {
      async POST(context) {
        const { answer, failure } = await check(find(context))
        if (failure !== undefined) {
          const status = failedCheckStatus(answer?.status) as ContentfulStatusCode
          return context.json(errorBody(status, `the test delivery failed: ${failure.message}`), status)
        }
        return context.json({ status: 'success', message: 'the test delivery was acknowledged' })
      },
    },
  }
}

const notFound = () => new HTTPException(404, { message: 'there is no webhook with this id' })
