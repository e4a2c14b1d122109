-- A query of a link reads a granule per column and part: 8 KiB of a column of names. The server decompresses whole blocks, of at least
-- 64 KiB by default. Blocks of existing parts stay as they are until the parts are merged.
ALTER TABLE {{.Rows}} {{.OnCluster}} MODIFY SETTING min_compress_block_size = 16384;
