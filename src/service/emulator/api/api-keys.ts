import { HTTPException } from 'hono/http-exception'
import * as z from 'zod'
import { notAnObject, oneOf, readInput } from '../shared/input.ts'
import { apiKeyDefaults, wireNames } from '../shared/undocumented.ts'
import type { ApiKeys } from '../workspace/api-keys.ts'
import { apiKeyTypes } from '../workspace/api-keys.ts'
import { listQuery, notBlank, readBody, readId, readQuery, ttl } from './request.ts'
import type { Routes } from './routes.ts'
import type { ApiRules } from './rules.ts'

export function apiKeyRoutes(apiKeys: ApiKeys, rules: ApiRules): Routes {
  const name = notBlank(rules.name)
  const input = z.object(
    { [wireNames.apiKeyName]: name, ttl: ttl.optional(), type: oneOf(apiKeyTypes).optional() },
    notAnObject,
  )
  const rename = z.object({ [wireNames.apiKeyName]: name }, notAnObject)
  const query = z.object(listQuery(['created_at', 'name'], rules.apiKeysLimit))

  return {
    '/api_keys': {
      GET(context) {
        const { items, total } = apiKeys.list(readQuery(query, context))
        return context.json({ status: 'success', data: { [wireNames.apiKeys]: items.map(rules.answerApiKey), total } })
      },
      async POST(context) {
        const { [wireNames.apiKeyName]: name, ...given } = readInput('body', input, await readBody(context.req))
        const key = apiKeys.create({ ...apiKeyDefaults, ...given, name })
        return context.json({ status: 'success', data: { [wireNames.apiKey]: rules.answerApiKey(key) } }, 201)
      },
    },
    '/api_keys/:id': {
      async PATCH(context) {
        const id = readId(context, rules)
        const { [wireNames.apiKeyName]: name } = readInput('body', rename, await readBody(context.req))
        if (!apiKeys.rename(id, name)) throw notFound()
        return context.json({ status: 'success', message: 'the API key was renamed' })
      },
      DELETE(context) {
        if (!apiKeys.delete(readId(context, rules))) throw notFound()
        return context.json({ status: 'success', message: 'the API key was deleted' })
      },
    },
  }
}

const notFound = () => new HTTPException(404, { message: 'there is no API key with this id' })
