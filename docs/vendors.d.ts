// The parts of vendors' SDKs that the pages use and that are too large to install for them.

declare module '@google-cloud/pubsub' {
  export class PubSub {
    topic(name: string, options?: { messageOrdering?: boolean }): Topic
  }
  export interface Topic {
    publishMessage(message: { json: object; orderingKey?: string }): Promise<string>
  }
}

declare module 'google-auth-library' {
  export class OAuth2Client {
    verifyIdToken(options: { idToken: string; audience: string }): Promise<{
      getPayload(): { email?: string | undefined; email_verified?: boolean | undefined } | undefined
    }>
  }
}

declare module '@vercel/functions' {
  export function waitUntil(promise: Promise<unknown>): void
}

declare module 'p-limit' {
  export default function pLimit(concurrency: number): <Result>(run: () => Promise<Result>) => Promise<Result>
}

declare module '@prisma/adapter-pg' {
  export class PrismaPg {
    constructor(pool: import('pg').Pool)
  }
}

declare module '@prisma/client' {
  /** As `prisma generate` writes it for a model `Video`. */
  export class PrismaClient {
    constructor(options: { adapter: object })
    readonly video: { update(change: { where: { id: string }; data: { ready: boolean } }): Promise<unknown> }
  }
}
