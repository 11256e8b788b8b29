import { Inject, Module, type OnModuleDestroy } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { Receiver } from 'media-webhooks'
import { closeServer } from 'media-webhooks/node'
import { makeReceiver, RECEIVER } from './receiver'
import { WebhooksController } from './webhooks.controller'

@Module({
  controllers: [WebhooksController],
  providers: [{ provide: RECEIVER, useFactory: makeReceiver }],
})
export class WebhooksModule implements OnModuleDestroy {
  constructor(
    @Inject(RECEIVER) private readonly receiver: Receiver,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  // The first shutdown hook: the handlers' resources are still open. Answers the deliveries in flight, and lets the
  // handlers of accepted events finish.
  async onModuleDestroy() {
    await closeServer(this.adapterHost.httpAdapter.getHttpServer(), this.receiver)
  }
}
