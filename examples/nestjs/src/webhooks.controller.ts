import { All, Controller, Inject, Req, Res } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { Receiver } from 'media-webhooks'
import { nodeHandler } from 'media-webhooks/node'
import { RECEIVER } from './receiver'

@Controller('webhooks')
export class WebhooksController {
  private readonly handle: ReturnType<typeof nodeHandler>

  constructor(@Inject(RECEIVER) receiver: Receiver) {
    this.handle = nodeHandler(receiver)
  }

  @All('media')
  media(@Req() request: Request, @Res() response: Response) {
    return this.handle(request, response)
  }
}
