import type { HonoRequest, MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { Authentication } from '../workspace/api-keys.ts'
import type { Workspace } from '../workspace/workspace.ts'

/** What is known of a request beside itself. */
export interface ApiEnv {
  Variables: { identity: Authentication }
}

/**
 * Finds out whose request it is. The official client sends a key pair twice, as Basic authorization and in headers of
 * its own, and sends headers empty for which it has nothing; so each credential that is there has to be good, and all
 * of them the same one's.
 */
export function identify(workspace: Workspace, req: HonoRequest): Authentication {
  const authorization = req.header('authorization') ?? ''
  const publicKey = req.header('stream-public-key') ?? ''
  const secretKey = req.header('stream-secret-key') ?? ''
  const found: Authentication[] = []
  if (authorization !== '') found.push(authorize(workspace, authorization))
  if (publicKey !== '' || secretKey !== '') found.push(workspace.authenticateKeyPair(publicKey, secretKey))
  return found.reduce(agree, undefined) ?? { refused: noCredentials }
}

/** Lets pass whoever may use the API. */
export const fullAccessOnly: MiddlewareHandler<ApiEnv> = async (context, next) => {
  const identity = context.get('identity')
  if ('refused' in identity) {
    context.header('WWW-Authenticate', 'Bearer')
    throw new HTTPException(401, { message: identity.refused })
  }
  if (identity.type === 'only_upload') {
    throw new HTTPException(403, { message: 'an API key of type only_upload may not do this: use one of full_access' })
  }
  return next()
}

function authorize(workspace: Workspace, authorization: string): Authentication {
  const [, scheme = '', value = ''] = /^(\w+) +(\S+)$/.exec(authorization) ?? []
  if (/^bearer$/i.test(scheme)) return workspace.authenticateToken(value)
  const [, publicKey, secretKey] = /^([^:]*):(.*)$/s.exec(Buffer.from(value, 'base64').toString()) ?? []
  if (/^basic$/i.test(scheme) && publicKey !== undefined && secretKey !== undefined) {
    return workspace.authenticateKeyPair(publicKey, secretKey)
  }
  return { refused: 'the Authorization header has to be `Bearer <access token>` or `Basic base64(<public>:<secret>)`' }
}

function agree(one: Authentication | undefined, other: Authentication): Authentication {
  if (one === undefined || 'refused' in other) return other
  if ('refused' in one || one.id === other.id) return one
  return { refused: 'the Authorization header and the stream-…-key headers hold credentials of two different keys' }
}

const noCredentials =
  'no credentials: send stream-public-key and stream-secret-key, or `Authorization: Bearer <access token>`'
