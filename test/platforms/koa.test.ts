import { nodeProgram } from './node-program.ts'
import { provePlatform } from './prove-platform.ts'

provePlatform('koa sqlite', nodeProgram('koa', 'sqlite'))
