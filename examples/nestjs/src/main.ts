import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module'

async function bootstrap() {
  // Nest's body parser keeps the bytes as request.rawBody, for verifiers that need them.
  const app = await NestFactory.create(AppModule, { rawBody: true })
  // SIGTERM calls onModuleDestroy.
  app.enableShutdownHooks()
  await app.listen(process.env.PORT ?? 3000)
  console.log(`listening on ${new URL(await app.getUrl()).port}`)
}

void bootstrap()
