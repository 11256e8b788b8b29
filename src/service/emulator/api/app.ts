import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { answerError } from '../http/answer-error.ts'
import type { EmulatedService } from '../service/service.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { type ApiEnv, identify } from './identity.ts'
import { rateLimit } from './rate-limit.ts'
import { mount } from './routes.ts'
import { rulesOf } from './rules.ts'
import { webhookRoutes } from './webhooks.ts'

/** The service's API, with paths relative to `/api`. Sends no CORS headers: the API is for servers. */
export function createApi(service: Pick<EmulatedService, 'profile' | 'workspace' | 'check'>): Hono<ApiEnv> {
  const { profile, workspace, check } = service
  const rules = rulesOf[profile]
  const api = new Hono<ApiEnv>()
  api.use((context, next) => {
    context.set('identity', identify(workspace, context.req))
    return next()
  })
  api.use(rateLimit(workspace.clock))
  mount(api, { ...apiKeyRoutes(workspace.apiKeys, rules), ...webhookRoutes(workspace.webhooks, check, rules) })
  api.all('*', ({ req }) => {
    throw new HTTPException(404, { message: `there is no endpoint at ${req.path}` })
  })
  api.onError(answerError)
  return api
}
